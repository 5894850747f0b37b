package etcdstore

import (
	"context"
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

// A watch is of the requests of this process that wait for a lock, which a step touches that has
// made one of them grantable. So a step is seen by those that it concerns, however many wait.
type watch struct {
	ctx    context.Context
	cancel context.CancelFunc
	// lapses ends the watch of all keys of the lock, for one that goes by itself. It is nil if
	// there is none: only the first who wait have it.
	lapses context.CancelFunc
}

// nearest is the last place in the queue from which a process watches all keys of a lock. If the
// first is dead, the second sees it go.
const nearest = 1

// Listen is a method of locks.Store.
func (s *Store) Listen(name locks.Name) (<-chan struct{}, func()) {
	hints, stop := s.board.Listen(name)
	s.watches.begin(name)
	return hints, func() {
		stop()
		s.watches.end(name)
	}
}

// begin watches a lock for which somebody listens, unless it is watched already.
func (w *watches) begin(name locks.Name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by[name] != nil {
		return
	}
	ctx, cancel := context.WithCancel(w.s.ctx)
	w.by[name] = &watch{ctx: ctx, cancel: cancel}
	if ctx.Err() == nil {
		touched := func(events []*clientv3.Event) bool { return slices.ContainsFunc(events, (*clientv3.Event).IsModify) }
		w.s.tasks.Go(func() { w.run(ctx, name, w.s.ofName(name)+ofProcess(w.s.id), 0, touched) })
	}
}

// end ends the watch of a lock for which nobody listens any more.
func (w *watches) end(name locks.Name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of := w.by[name]; of != nil && w.s.board.Listening(name) == 0 {
		of.cancel()
		delete(w.by, name)
	}
}

// near is called with each state of a lock that a request of this process may wait for.
func (w *watches) near(st *state) {
	name, place := st.r.Name, st.place(w.s.id)
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.by[name]
	switch {
	case of == nil || place < 0 || of.ctx.Err() != nil:
	case place > nearest && of.lapses != nil:
		of.lapses()
		of.lapses = nil
	case place <= nearest && of.lapses == nil:
		ctx, cancel := context.WithCancel(of.ctx)
		of.lapses = cancel
		prefix := w.s.ofName(name)
		w.s.tasks.Go(func() {
			w.run(ctx, name, prefix, st.at+1, func(events []*clientv3.Event) bool { return lapsed(prefix, events) })
		})
	}
}

// run watches the keys with a prefix until ctx is done, from a revision on if it is not 0. The
// client mends what breaks; a watch that has ended, as when etcd has no leader, begins anew.
func (w *watches) run(ctx context.Context, name locks.Name, prefix string, from int64, concerns func([]*clientv3.Event) bool) {
	pause := async.Jitter(0.5, async.Backoff(50*time.Millisecond, time.Second))
	begin := clientv3.WithRev(from)
	for try := 1; ctx.Err() == nil; try++ {
		if from == 0 || try > 1 { // some may have been missed before
			begin = clientv3.WithCreatedNotify()
		}
		for answer := range w.watcher.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), begin) {
			if answer.Err() != nil {
				break
			}
			if try = 1; answer.Created || concerns(answer.Events) {
				w.s.board.Hint(name)
			}
		}
		_ = async.Sleep(ctx, pause(try))
	}
}

// lapsed says whether a key is gone that no step has deleted, for each step that deletes one writes
// the record.
func lapsed(prefix string, events []*clientv3.Event) bool {
	written := map[int64]bool{}
	for _, e := range events {
		if string(e.Kv.Key) == prefix+recordKey {
			written[e.Kv.ModRevision] = true
		}
	}
	return slices.ContainsFunc(events, func(e *clientv3.Event) bool {
		return e.Type == mvccpb.DELETE && !written[e.Kv.ModRevision]
	})
}
