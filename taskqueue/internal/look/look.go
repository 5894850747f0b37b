// Package look takes pictures of a store for those who watch: the page and top.
//
// The cost for the store is bounded, however many watch: there is one picture at a
// time, it serves everybody for a second, and for as long as it took to take.
package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
)

// Bounds of one picture.
const (
	MaxQueues = 100 // that are looked at
	MaxTasks  = 20  // of each queue in each list
	maxAge    = time.Second
	patience  = 5 * time.Second // with the store
	atOnce    = 4               // calls of the store
)

// A Looker takes pictures of a store. Its methods may be called by any number of
// goroutines.
type Looker struct {
	store taskqueue.Store
	names []string // empty: all queues

	mu      sync.Mutex
	last    *Snapshot
	err     error         // why the last attempt to take one failed
	until   time.Time     // last and err are fresh until then
	under   chan struct{} // closed when the picture that is being taken is there; nil: none is
	samples map[string]*history
}

// New returns a Looker for queues of a store; of no names: for all queues.
func New(store taskqueue.Store, names ...string) *Looker {
	return &Looker{store: store, names: names, samples: map[string]*history{}}
}

// Look returns a picture of the store that is at most a second old, or so. If the store
// does not answer it returns the error, and the last picture, or nil if there was none.
func (l *Looker) Look(ctx context.Context) (*Snapshot, error) { return l.look(ctx, true) }

// Sample notes the counters, from which rates are made. It looks for nothing else.
func (l *Looker) Sample(ctx context.Context) error {
	_, err := l.look(ctx, false)
	return err
}

func (l *Looker) look(ctx context.Context, lists bool) (*Snapshot, error) {
	for {
		l.mu.Lock()
		fresh := time.Now().Before(l.until) && (l.last != nil || l.err != nil)
		if fresh {
			defer l.mu.Unlock()
			return l.last, l.err
		}
		under := l.under
		if under == nil {
			l.under = make(chan struct{})
			l.mu.Unlock()
			return l.take(ctx, lists)
		}
		l.mu.Unlock()
		select {
		case <-under:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take takes a picture for everybody who waits for one, so it does not end with the
// one who asked first.
func (l *Looker) take(ctx context.Context, lists bool) (*Snapshot, error) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), patience, fmt.Errorf("the store has not answered for %v", patience))
	defer cancel()
	defer l.taken() // also if the store panics
	begin := time.Now()
	s, err := l.picture(ctx, lists)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	end := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		s.At, s.TookSeconds = begin, end.Sub(begin).Seconds()
		l.note(s)
		if !lists {
			return nil, nil
		}
		l.last = s
	}
	l.err, l.until = err, end.Add(max(maxAge, end.Sub(begin)))
	return l.last, err
}

// taken has those who wait look again.
func (l *Looker) taken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.under)
	l.under = nil
}

// picture asks the store.
func (l *Looker) picture(ctx context.Context, lists bool) (*Snapshot, error) {
	names := l.names
	s := &Snapshot{Queues: []Queue{}, Running: []Task{}, Retrying: []Task{}, Dead: []Task{}, Periodic: []Periodic{}}
	if len(names) == 0 {
		var err error
		if names, err = l.store.Queues(ctx); err != nil {
			return nil, err
		}
	}
	if s.MoreQueues = max(len(names)-MaxQueues, 0); s.MoreQueues > 0 {
		names = names[:MaxQueues]
	}
	var failed error
	all := async.Map(ctx, slices.Values(names), func(ctx context.Context, name string) (*part, error) {
		return l.queue(ctx, name, lists), nil
	}, async.Limit(atOnce))
	ok := len(names) == 0
	for p, err := range all {
		if err != nil {
			return nil, err
		}
		s.add(p)
		failed = errors.Join(failed, p.err)
		ok = ok || p.err == nil
	}
	if !ok {
		return nil, failed
	}
	slices.SortStableFunc(s.Running, func(a, b Task) int { return a.StartedAt.Compare(b.StartedAt) })
	slices.SortStableFunc(s.Retrying, func(a, b Task) int { return a.DueAt.Compare(b.DueAt) })
	slices.SortStableFunc(s.Dead, func(a, b Task) int { return b.EndedAt.Compare(a.EndedAt) })
	slices.SortStableFunc(s.Periodic, func(a, b Periodic) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Name, b.Name))
	})
	return s, nil
}

// A part is what a picture has of one queue.
type part struct {
	queue                   Queue
	running, retrying, dead []Task
	periodic                []Periodic
	err                     error
}

func (s *Snapshot) add(p *part) {
	s.Queues = append(s.Queues, p.queue)
	s.Running = append(s.Running, p.running...)
	s.Retrying = append(s.Retrying, p.retrying...)
	s.Dead = append(s.Dead, p.dead...)
	s.Periodic = append(s.Periodic, p.periodic...)
}

// queue looks at one queue. A queue that cannot be read is noted with it: one queue that is
// damaged does not hide the others.
func (l *Looker) queue(ctx context.Context, name string, lists bool) *part {
	p := &part{queue: Queue{Name: name, States: map[taskqueue.State]int64{}, Counts: map[taskqueue.Counter]int64{}}}
	st, err := l.store.Stats(ctx, name)
	if err == nil {
		p.queue.fill(st)
	}
	if err == nil && lists {
		err = errors.Join(
			l.list(ctx, &p.running, st, taskqueue.ListRequest{State: taskqueue.StateRunning}),
			l.list(ctx, &p.retrying, st, taskqueue.ListRequest{State: taskqueue.StateRetrying}),
			l.list(ctx, &p.dead, st, taskqueue.ListRequest{State: taskqueue.StateDead, Reverse: true}),
			l.periodic(ctx, p))
	}
	if err != nil {
		p.err = fmt.Errorf("queue %s: %w", name, err)
		p.queue.Error = err.Error()
	}
	return p
}

// list adds tasks in a state; where there are none the store is not asked.
func (l *Looker) list(ctx context.Context, to *[]Task, st taskqueue.Stats, r taskqueue.ListRequest) error {
	if st.States[r.State] <= 0 {
		return nil
	}
	r.Max = MaxTasks
	page, err := l.store.List(ctx, st.Queue, r)
	for _, t := range page.Tasks {
		*to = append(*to, newTask(t))
	}
	return err
}

func (l *Looker) periodic(ctx context.Context, p *part) error {
	all, err := l.store.Periodic(ctx, p.queue.Name)
	for _, one := range all[:min(len(all), MaxTasks)] {
		p.periodic = append(p.periodic, Periodic{Queue: p.queue.Name, Name: one.Name, Schedule: one.Schedule, Defined: one.Defined, Last: one.Last})
	}
	return err
}
