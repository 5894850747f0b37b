//go:build explore

package async

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
	"github.com/ambit-go/ambit/internal/explore"
)

// This file runs a program and notes what it did.

// A handle is a future of the program and what is known of its task.
type handle struct {
	f       *Future[int]
	owner   *owner
	own     *owner
	ctx     context.Context
	plain   bool    // one handler and no more: the outcome is what that did
	hooked  bool    // has a discard hook
	daemons daemons // around it, itself included
	ran     int
	running int  // runs of its handler that go on
	again   bool // the handler may be called again
	ended   bool
	value   int
	err     error
	given   int // waits that were given the value
	dropped int // times that the discard hook had it
	aborts  int
	touched bool // somebody waited for it, or cancelled it
}

// An owner is a scope or a task: what it started must have settled when it has.
type owner struct {
	handles []*handle
	errs    []failed // which the scope must return
	panics  *inquiry // of a scope with OnPanic
}

// A failed is an error of a handler that ran with ctx; nil: of no handler.
type failed struct {
	err error
	ctx context.Context
	daemons
}

// daemons are the owners of the daemons that something stands in.
type daemons []*tree.Scope

// excuse reports that what was returned under ctx is no failure: a daemon around it was
// told to stop, and ctx was cancelled for that.
func (d daemons) excuse(ctx context.Context) bool {
	if ctx == nil || ctx.Err() == nil {
		return false
	}
	cause := context.Cause(ctx)
	return slices.ContainsFunc(d, func(owner *tree.Scope) bool {
		return cause == ErrDismissed || tree.StoppedWith(owner, cause)
	})
}

// A machine runs one program.
type machine struct {
	w    *explore.World
	mu   explore.Mutex // guards the fields of handles and owners
	all  []*handle
	lost []error
	n    int
}

// An env is where a deed runs.
type env struct {
	*machine
	ctx     context.Context
	owner   *owner
	visible []*handle // started before in program order, so that nobody waits in a circle
	limit   bool      // somewhere around is a limit
	daemons daemons   // around what is done here

	uncancelled bool // ctx is not cancelled with the scope that it belongs to
}

func (m *machine) locked(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// plantedPanic is a panic of the program's own, plantedError an error.
type (
	plantedPanic int
	plantedError int
)

func (e plantedError) Error() string { return fmt.Sprintf("planted %d", int(e)) }

// handler returns what runs steps and ends as s says. h may be nil.
func (e env) handler(h *handle, s deed, part int) func(context.Context) (int, error) {
	e.visible = slices.Clip(e.visible)
	e.owner = new(owner)
	if h != nil {
		h.own = e.owner
	}
	var id int
	e.locked(func() { e.n++; id = e.n })
	e.daemons = e.daemonsAround(s)
	if h != nil {
		h.daemons = e.daemons
	}
	return func(ctx context.Context) (value int, err error) {
		e.ctx, e.uncancelled = ctx, false
		e.locked(func() {
			if h != nil {
				h.ran++
				h.ctx = ctx
			}
		})
		if h != nil {
			defer func() { e.locked(func() { h.ended, h.value, h.err = true, value, err }) }()
		}
		first := e.run(s.parts[part])
		switch s.end {
		case endPanic:
			panic(plantedPanic(id))
		case endGoexit:
			runtime.Goexit()
		case endError:
			err = plantedError(id)
		case endFirst:
			err = first
		}
		if err != nil {
			return 0, err
		}
		return id, nil
	}
}

func (e env) plain(s deed, part int) func(context.Context) error {
	f := e.handler(nil, s, part)
	return func(ctx context.Context) error { _, err := f(ctx); return err }
}

// run does steps one after the other and returns the first error.
func (e *env) run(steps []deed) (first error) {
	for _, s := range steps {
		if err := e.do(s); first == nil {
			first = err
		}
	}
	return first
}

// isDaemon reports whether the task of s is a daemon.
func (s deed) isDaemon() bool { return s.opts&withDaemon != 0 && s.n%2 == 0 }

// daemonsAround returns those that what the task of s does stands in.
func (e env) daemonsAround(s deed) daemons {
	if s.what != doStart && s.what != doGo || !s.isDaemon() {
		return e.daemons
	}
	t, _ := tree.Nearest(e.ctx)
	return append(slices.Clip(e.daemons), t.Scope())
}

// options returns those of a task.
func (e env) options(h *handle, s deed) (opts []TaskOption) {
	if s.opts&withTimeout != 0 {
		opts = append(opts, Timeout(time.Duration(1+s.n%3)*time.Millisecond))
	}
	if s.opts&withGrace != 0 {
		opts = append(opts, Grace(time.Duration(1+s.n%2)*time.Millisecond))
	}
	if s.opts&withAbort != 0 {
		opts = append(opts, OnAbort(func(ctx context.Context, cause error) error {
			if h != nil {
				e.locked(func() { h.aborts++ })
			}
			return nil
		}))
	}
	if s.opts&withDiscard != 0 && h != nil {
		h.hooked = true
		opts = append(opts, OnDiscard(func(int) { e.locked(func() { h.dropped++ }) }))
	}
	if s.opts&withExecutor != 0 && !e.limit {
		opts = append(opts, On(executors[s.n%len(executors)]))
	}
	if s.opts&withRestart != 0 {
		opts = append(opts, Restart(RestartPolicy{Interval: Every(0), Attempts: 1 + s.n%3}))
	}
	if s.opts&withStopOn != 0 {
		ch := make(chan struct{})
		if s.n%4 == 0 {
			close(ch)
		} else {
			time.AfterFunc(time.Duration(s.n%4)*time.Millisecond, func() { close(ch) })
		}
		opts = append(opts, StopOn(ch, nil))
	}
	if s.opts&withLeader != 0 && s.n%2 == 1 {
		opts = append(opts, Leader())
	}
	if s.isDaemon() {
		opts = append(opts, Daemon())
	}
	return opts
}

// restarted returns f for a task with Restart: its first run fails every other
// time. No run may begin before the one before it, and what that has started, has
// ended.
func (e env) restarted(h *handle, s deed, f func(context.Context) (int, error)) func(context.Context) (int, error) {
	h.again = true
	var id int
	e.locked(func() { e.n++; id = e.n })
	return func(ctx context.Context) (value int, err error) {
		var first bool
		e.locked(func() {
			first = h.ran == 0
			if h.running++; h.running > 1 {
				e.w.Failf("two runs at a time")
			}
		})
		e.mustHaveSettled(h.own, "a run has begun before what the one before has started has settled")
		defer e.locked(func() { h.running-- })
		if value, err = f(ctx); err == nil && first && s.n%2 == 0 {
			value, err = 0, plantedError(id)
			e.locked(func() { h.value, h.err = value, err })
		}
		return value, err
	}
}

// start makes a handle of what begin returns.
func (e *env) start(begin func(h *handle) *Future[int]) *handle {
	h := &handle{owner: e.owner}
	f := begin(h)
	e.locked(func() {
		h.f = f
		e.all = append(e.all, h)
		e.owner.handles = append(e.owner.handles, h)
	})
	e.visible = append(slices.Clip(e.visible), h)
	return h
}

// pick returns a future that was started before, nil if there is none.
func (e *env) pick(n int) *handle {
	if len(e.visible) == 0 {
		return nil
	}
	return e.visible[len(e.visible)-1-n%len(e.visible)]
}

// wait calls one of the waits for h and checks what it says.
func (e *env) wait(h *handle, limit time.Duration, wait func(*Future[int]) (int, error)) error {
	e.locked(func() { h.touched = true })
	began := time.Now()
	value, err := wait(h.f)
	waited := time.Since(began)
	state, done := h.f.State(), e.ctx.Err() != nil
	if state == Done && err == nil && h.own != nil {
		e.mustHaveSettled(h.own, "a task has settled before what it started")
	}
	e.locked(func() {
		if err == nil {
			h.given++
			if h.plain && (!h.ended || h.value != value) {
				e.w.Failf("a wait gave %d: its handler ended: %v, with %d", value, h.ended, h.value)
			}
			return
		}
		var late *TimeoutError
		switch {
		case errors.Is(err, ErrAwaitCycle):
			e.w.Failf("a cycle of waits where there is none: %v", err)
		case state == Done, done:
		case limit > 0 && errors.As(err, &late) && waited >= limit:
		default:
			e.w.Failf("a wait ended for no reason after %v of %v: %v", waited, limit, err)
		}
	})
	return err
}

// mustHaveSettled checks that everything that was started in own has.
func (m *machine) mustHaveSettled(own *owner, otherwise string) {
	var handles []*handle
	m.locked(func() { handles = slices.Clone(own.handles) })
	for _, h := range handles {
		if h.f.State() != Done {
			m.w.Failf("%s", otherwise)
		}
	}
}

// scope runs a scope and checks what it left.
func (e env) scope(s deed) (err error) {
	own := new(owner)
	var limits *tree.Scope
	var opts []ScopeOption
	if s.limit > 0 {
		opts = append(opts, Limit(s.limit))
		e.limit = true
	}
	if s.d > 0 {
		opts = append(opts, Timeout(s.d))
	}
	if s.opts&withExecutor != 0 {
		opts = append(opts, On(executors[s.n%len(executors)]))
	}
	var raised any
	if s.asks {
		own.panics = newInquiry()
		opts = append(opts, e.onPanic(own.panics, own, s.n))
	}
	defer func() {
		e.mustHaveSettled(own, "a scope has returned before a task of it settled")
		if own.panics != nil && limits != nil {
			own.panics.check(e, raised, context.Cause(limits.Task))
		}
		for _, want := range own.errs {
			if !want.excuse(want.ctx) && !tells(err, want.err) {
				e.w.Failf("a scope lost an error: %v is not in: %v", want.err, err)
			}
		}
		if limits != nil && s.limit > 0 {
			e.w.AtEnd(limits.Limit.Core.AtRest)
		}
	}()
	defer func() {
		if raised = recover(); raised != nil {
			err = e.panicked(raised)
			own.errs = nil
		}
	}()
	return Scope(e.ctx, func(ctx context.Context) error {
		limits = ctx.(*tree.Task).Scope()
		e.ctx, e.owner = ctx, own
		err := e.run(s.parts[0])
		if s.end == endValue {
			return nil
		}
		return err
	}, opts...)
}

// panicked checks that a panic is one of the program's.
func (e env) panicked(v any) error {
	if n, ok := v.(plantedPanic); ok {
		return fmt.Errorf("a body panicked: %d", n)
	}
	p, ok := v.(*PanicError)
	if !ok {
		e.w.Failf("the library panicked: %v\n%s", v, stackHere())
		return errors.New("panicked")
	}
	if _, ok := p.Value.(plantedPanic); !ok {
		e.w.Failf("a task panicked: %v", p)
	}
	return p
}

func stackHere() string {
	buf := make([]byte, 1<<14)
	return string(buf[:runtime.Stack(buf, false)])
}

// tells reports whether err is want, or holds it: also beside a panic, where errors.Is does
// not look.
func tells(err, want error) bool {
	if errors.Is(err, want) {
		return true
	}
	var inside []error
	switch e := err.(type) {
	case nil:
	case *PanicError:
		inside = append(inside, e.Also...)
	case interface{ Unwrap() []error }:
		inside = e.Unwrap()
	case interface{ Unwrap() error }:
		inside = []error{e.Unwrap()}
	}
	return slices.ContainsFunc(inside, func(err error) bool { return tells(err, want) })
}

// check looks at every task when nothing goes on any more.
func (m *machine) check() error {
	for _, h := range m.all {
		if st := h.f.State(); st != Done {
			return fmt.Errorf("a task is %v in the end", st)
		}
		value, err, _ := h.f.Result()
		switch {
		case h.ran > 1 && !h.again:
			return fmt.Errorf("a handler ran %d times", h.ran)
		case h.aborts > max(h.ran, 1):
			return fmt.Errorf("an abort hook was called %d times", h.aborts)
		case h.running > 0:
			return errors.New("a handler runs in the end")
		case !h.plain:
		case h.ran == 0 && err == nil:
			return errors.New("a task that never ran has no error")
		case h.hooked && h.dropped > max(h.ran, 1):
			return fmt.Errorf("a value was discarded %d times", h.dropped)
		case h.hooked && h.ended && h.err == nil && h.value != 0 && h.dropped == h.ran && h.given > 0:
			return errors.New("a value was given and discarded")
		case h.ended && isPlanted(h.err) && !h.daemons.excuse(h.ctx) && !tells(err, h.err):
			return fmt.Errorf("a handler returned %v, the outcome is %v", h.err, err)
		case err == nil && (!h.ended || h.err != nil || value != h.value):
			return fmt.Errorf("the outcome is %d, the handler ended: %v with %d, %v", value, h.ended, h.value, h.err)
		}
	}
	for _, err := range m.lost { // of loops that were left, say, and beside panics
		if p := new(PanicError); errors.As(err, &p) {
			if _, ok := p.Value.(plantedPanic); !ok {
				return fmt.Errorf("a panic was told to the root: %v", err)
			}
		}
	}
	return nil
}

// isPlanted reports whether err is a handler's own, and nothing that it was told.
func isPlanted(err error) bool {
	_, ok := err.(plantedError)
	return ok
}
