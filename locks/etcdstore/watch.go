package etcdstore

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
)

// watches are those of the locks that this process listens for.
type watches struct {
	s       *Store
	watcher clientv3.Watcher

	mu sync.Mutex
	by map[locks.Name]*watch
}

// A watch is of all keys of a lock.
type watch struct {
	n      int // that listen
	cancel context.CancelFunc
}

// Listen is a method of locks.Store.
func (s *Store) Listen(name locks.Name) (<-chan struct{}, func()) {
	hints, stop := s.board.Listen(name)
	s.watches.more(name)
	var once sync.Once
	return hints, func() {
		stop()
		once.Do(func() { s.watches.less(name) })
	}
}

func (w *watches) more(name locks.Name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[locks.Name]*watch{}
	}
	if of := w.by[name]; of != nil {
		of.n++
		return
	}
	ctx, cancel := context.WithCancel(w.s.ctx)
	w.by[name] = &watch{1, cancel}
	if ctx.Err() == nil {
		w.s.tasks.Go(func() { w.run(ctx, name) })
	}
}

func (w *watches) less(name locks.Name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.by[name]
	if of.n--; of.n == 0 {
		of.cancel()
		delete(w.by, name)
	}
}

// run watches a lock until ctx is done. The client mends what breaks; a watch that has ended, as
// when etcd has no leader, begins anew.
func (w *watches) run(ctx context.Context, name locks.Name) {
	prefix := w.s.ofName(name)
	pause := async.Jitter(0.5, async.Backoff(50*time.Millisecond, time.Second))
	for try := 1; ctx.Err() == nil; try++ {
		answers := w.watcher.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		for answer := range answers {
			if answer.Err() != nil {
				break
			}
			if try = 1; answer.Created || w.concerns(prefix, answer.Events) { // some may have been missed before
				w.s.board.Hint(name)
			}
		}
		_ = async.Sleep(ctx, pause(try))
	}
}

// concerns says whether a request of this process may be grantable since these events: the record
// says so, or a key is gone that no step has deleted, for each step writes the record.
func (w *watches) concerns(prefix string, events []*clientv3.Event) bool {
	written := map[int64]bool{}
	for _, e := range events {
		if string(e.Kv.Key) != prefix+recordKey {
			continue
		}
		written[e.Kv.ModRevision] = true
		var r struct {
			Wake []string `json:"w"`
		}
		if json.Unmarshal(e.Kv.Value, &r) == nil && slices.Contains(r.Wake, w.s.id) {
			return true
		}
	}
	return slices.ContainsFunc(events, func(e *clientv3.Event) bool {
		return e.Type == mvccpb.DELETE && !written[e.Kv.ModRevision]
	})
}
