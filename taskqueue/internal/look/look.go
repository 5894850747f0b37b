// Package look takes pictures of a store for those who watch, and finds tasks for them.
//
// The cost for the store is bounded, however many watch: there is one picture at a
// time, it serves everybody for a second, and for as long as it took to take.
package look

import (
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
	MaxSample = 200 // tasks of a state, of each queue, that a picture is made of
	MaxShown  = 20  // parents, and groups of limits, of each queue
	MaxGroups = 50  // of failures, of each queue
	maxAge    = time.Second
	soon      = 100 * time.Millisecond // how long a new picture is waited for if there is an older one
	patience  = 5 * time.Second        // with the store
	atOnce    = 4                      // calls of the store
)

// A Looker takes pictures of a store. Its methods may be called by any number of
// goroutines.
type Looker struct {
	store taskqueue.Store
	names []string // empty: all queues

	mu    sync.Mutex
	last  *Snapshot
	err   error         // why the last attempt to take one failed
	until time.Time     // last and err are fresh until then
	stale bool          // something was done since last was taken
	under chan struct{} // closed when the picture that is being taken is there; nil: none is
}

// New returns a Looker for queues of a store; of no names: for all queues.
func New(store taskqueue.Store, names ...string) *Looker {
	return &Looker{store: store, names: names}
}

// Stale has the next Look take a picture: something has been done.
func (l *Looker) Stale() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = true
}

// Look returns a picture of the store that is at most a second old, or so; an older one, if the store takes its
// time and nothing has been done. If the store does not answer it returns the error, and the last picture, or
// nil if there was none.
func (l *Looker) Look(ctx context.Context) (*Snapshot, error) {
	for {
		l.mu.Lock()
		last, err, stale := l.last, l.err, l.stale
		if !stale && time.Now().Before(l.until) {
			l.mu.Unlock()
			return last, err
		}
		begun := l.under == nil
		if begun {
			l.under, l.stale = make(chan struct{}), false
			go l.take(l.under)
		}
		under := l.under
		l.mu.Unlock()
		var enough <-chan time.Time
		if last != nil && !stale {
			t := time.NewTimer(soon)
			defer t.Stop()
			enough = t.C
		}
		select {
		case <-under:
		case <-enough:
			return last, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if begun || !stale { // else it was begun before what has been done
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.last, l.err
		}
	}
}

// take takes a picture for everybody who waits for one, so it does not end with the
// one who asked first.
func (l *Looker) take(under chan struct{}) {
	defer close(under)
	ctx, cancel := Patience(context.Background())
	defer cancel()
	begin := time.Now()
	s, err := l.guarded(ctx, begin)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	end := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		s.At, s.TookSeconds = begin, end.Sub(begin).Seconds()
		l.last = s
	}
	l.err, l.until, l.under = err, end.Add(max(maxAge, end.Sub(begin))), nil
}

// guarded is picture; a store that panics does not end the program, since nobody asked on this goroutine.
func (l *Looker) guarded(ctx context.Context, now time.Time) (s *Snapshot, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the store has panicked: %v", p)
		}
	}()
	return l.picture(ctx, now)
}

// Patience bounds how long the store is waited for.
func Patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, patience, fmt.Errorf("the store has not answered for %v", patience))
}

// picture asks the store.
func (l *Looker) picture(ctx context.Context, now time.Time) (*Snapshot, error) {
	names := l.names
	s := &Snapshot{
		Queues: []Queue{}, Failures: []Failure{}, Kinds: []Kind{}, Running: []Task{},
		Waiting: []Parent{}, Kept: []Kept{}, Periodic: []Periodic{},
	}
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
		return l.queue(ctx, name, now), nil
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
	s.sort()
	return s, nil
}

// A part is what a picture has of one queue.
type part struct {
	Snapshot
	queue Queue
	err   error
}

// queue looks at one queue. A queue that cannot be read is noted with it: one queue that is
// damaged does not hide the others.
func (l *Looker) queue(ctx context.Context, name string, now time.Time) *part {
	p := &part{queue: Queue{Name: name, States: map[taskqueue.State]int64{}, Counts: map[taskqueue.Counter]int64{}}}
	st, err := l.store.Stats(ctx, name)
	if err == nil {
		p.queue.fill(st)
		err = p.look(ctx, l.store, now)
		p.sort()
		p.Failures = p.Failures[:min(len(p.Failures), MaxGroups)]
	}
	if err != nil {
		p.err = fmt.Errorf("queue %s: %w", name, err)
		p.queue.Error = err.Error()
	}
	return p
}

// look fills the part with what is more than figures.
func (p *part) look(ctx context.Context, store taskqueue.Store, now time.Time) error {
	sample := func(s taskqueue.State, reverse bool) ([]taskqueue.Info, error) {
		if p.queue.States[s] <= 0 || s == taskqueue.StateReady && p.queue.Limited == 0 {
			return nil, nil // where there are none the store is not asked
		}
		page, err := store.List(ctx, p.queue.Name, taskqueue.ListRequest{State: s, Max: MaxSample, Reverse: reverse})
		return page.Tasks, err
	}
	running, e1 := sample(taskqueue.StateRunning, false)
	retrying, e2 := sample(taskqueue.StateRetrying, false)
	dead, e3 := sample(taskqueue.StateDead, true)
	waiting, e4 := sample(taskqueue.StateWaiting, false)
	limited, e5 := sample(taskqueue.StateReady, true) // those that are limited come first in this order
	if err := errors.Join(e1, e2, e3, e4, e5); err != nil {
		return err
	}
	slices.SortStableFunc(running, func(a, b taskqueue.Info) int { return a.StartedAt.Compare(b.StartedAt) })
	for _, t := range running {
		p.Running = append(p.Running, newTask(t))
	}
	p.failures(dead, retrying)
	p.kept(limited, running)
	return errors.Join(p.kinds(ctx, store, running, now), p.waiting(ctx, store, waiting), p.periodic(ctx, store, now))
}

func (p *part) periodic(ctx context.Context, store taskqueue.Store, now time.Time) error {
	all, err := store.Periodic(ctx, p.queue.Name)
	for _, one := range all[:min(len(all), 5*MaxShown)] {
		p.Periodic = append(p.Periodic, Periodic{p.queue.Name, one, one.Next(now)})
	}
	return err
}
