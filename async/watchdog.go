package async

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is about work that is watched while it runs: from outside by Watch, and by signs
// of life that a handler gives, with Heartbeat.

// Watch runs handler as [Execute] does, and check beside it again and again; a check
// that fails aborts the task.
//
//	result := async.Watch(ctx, convert, async.Every(time.Second), diskHasRoom)
//
// # Details
//
// The first check is made after an interval. Two checks never run at once. interval
// returns the delay for the number of checks made. The first check that fails, or the
// first after those that [Tolerate] lets pass, aborts the task: its context is
// cancelled with a [*WatchdogError], its abort hook is called, and the outcome matches
// the check's error and the handler's own. If the handler succeeds all the same, that
// is the outcome.
//
// When the handler and what it started have ended, the context of a check that still
// runs is cancelled; the future settles after that has returned. Checks need no slot
// of a [Limit]. To have several watchdogs, nest them.
func Watch[T any](
	ctx context.Context, handler func(ctx context.Context) (T, error), interval Interval,
	check func(ctx context.Context) error, opts ...WatchOption,
) *Future[T] {
	switch {
	case handler == nil:
		panic("async: Watch with a nil handler: pass what is to be called")
	case check == nil:
		panic("async: Watch with a nil check: pass what is to be called")
	}
	mustHaveInterval("Watch", interval)
	var o watchOptions
	for _, opt := range opts {
		mustNotBeNil(opt)
		opt.applyWatch(&o)
	}
	dog := watchdog{interval, check, o.tolerate}
	n := &named[T]{what: handler}
	n.init(tree.KindFuture, func(ctx context.Context) (T, error) {
		dog.watch(n.f.Task.Scope())
		return handler(ctx)
	})
	return n.startIn(ctx, o.task)
}

// A watchdog calls check until it fails.
type watchdog struct {
	interval Interval
	check    func(context.Context) error
	tolerate int
}

// watch starts the dog as a daemon of s, outside every limit.
func (d *watchdog) watch(s *tree.Scope) {
	g := &tree.GoTask{Handler: func(ctx context.Context) error { d.run(ctx, s); return nil }}
	g.Task.Self, g.Task.Kind, g.Task.Owner = g, tree.KindGo, s
	g.Task.Equip(&tree.More{}, nil)
	g.Task.More.Name = "watchdog of " + s.Task.Name()
	g.Task.More.Daemon = true
	s.Add(&g.Task) // it cannot have ended: this is its handler
	go g.Task.Main()
}

// run is the goroutine of the dog.
func (d *watchdog) run(ctx context.Context, s *tree.Scope) {
	for made, failed := 0, 0; ; made++ {
		if Sleep(ctx, max(d.interval(made), minInterval)) != nil {
			return
		}
		err := d.check(ctx)
		switch {
		case ctx.Err() != nil:
			return // the task has ended, or was stopped by somebody else
		case err == nil:
			failed = 0
		case failed < d.tolerate:
			failed++
		default:
			s.Cancel(tree.Canceled(&WatchdogError{Task: s.Task.Name(), Err: err}))
			return
		}
	}
}

// ErrNoBeat is the Err of a [WatchdogError] by [Heartbeat].
var ErrNoBeat = errors.New("no heartbeat")

// Heartbeat aborts the task if its handler does not call [Beat] at least every d, from
// its start on.
//
//	async.Go(ctx, convert, async.Heartbeat(10*time.Second))
//
// # Details
//
// The context of the task is cancelled with a [*WatchdogError] that matches
// [ErrNoBeat]. Once the handler has returned no beat is missed. d <= 0 panics.
func Heartbeat(d time.Duration) TaskOption {
	if d <= 0 {
		panic("async: Heartbeat(d): d must be positive")
	}
	return taskOption(func(t *tree.TaskOptions) { t.Hang().Heart = &heart{every: d} })
}

// Beat says that the work of ctx gets on.
//
//	for _, page := range pages {
//		async.Beat(ctx)
//	}
//
// # Details
//
// A beat counts for the task of ctx and for all that this is part of. Without a
// [Heartbeat] Beat does nothing. It does not block.
func Beat(ctx context.Context) {
	t, _ := tree.Nearest(ctx)
	for ; t != nil; t = t.Owner.TaskOrNil() {
		if t.More == nil {
			continue
		}
		if h, beats := t.More.Added().Heart.(*heart); beats {
			h.last.Store(int64(tree.Clock()))
		}
	}
}

// A heart remembers the last beat of a task. The timer is not set at every
// beat; when it fires it looks when the next beat is due.
type heart struct {
	every time.Duration    // a beat is expected
	last  tree.AtomicInt64 // on our clock
	timer *time.Timer
}

func (h *heart) Again() tree.Pulse { return &heart{every: h.every} }

// Start begins to listen for beats of the task of s.
func (h *heart) Start(s *tree.Scope) {
	h.last.Store(int64(tree.Clock()))
	s.Mu.Lock()
	h.timer = time.AfterFunc(h.every, func() { h.listen(s) })
	r := tree.SeldomLocked(s)
	r.Timers = append(r.Timers, h.timer)
	s.Mu.Unlock()
}

// listen is called when a beat of s may be missing.
func (h *heart) listen(s *tree.Scope) {
	left := h.every - (tree.Clock() - time.Duration(h.last.Load()))
	s.Mu.Lock()
	over := s.Ended || s.Why.Load() != nil || s.Task.State.Load() != tree.StateRunning
	if !over && left > 0 {
		h.timer.Reset(left)
	}
	s.Mu.Unlock()
	if !over && left <= 0 {
		s.Cancel(tree.Canceled(&WatchdogError{Task: s.Task.Name(), Err: fmt.Errorf("%w for %v", ErrNoBeat, h.every)}))
	}
}
