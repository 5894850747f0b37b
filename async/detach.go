package async

import (
	"context"
	"time"
)

// shutdownGrace is how long Shutdown gives cancelled tasks to return once
// their abort hooks have ended.
const shutdownGrace = 100 * time.Millisecond

// Detach starts task so that it outlives the scope of ctx. It is the only way
// to do so, and on record: the task is registered under name, which must not
// be empty, at the root until it ends. Its context keeps the values of ctx but
// not its cancellation. Its error is returned by [Shutdown]; a panic of it
// ends the process, with its stack, as there is nobody to re-raise it. Detach
// does not block, and panics once Shutdown has been called.
func Detach(ctx context.Context, name string, task func(ctx context.Context) error, opts ...TaskOption) {
	if task == nil {
		panic("async: Detach with a nil function")
	}
	if name == "" {
		panic("async: Detach without a name: whoever finds it running must be able to tell what it is")
	}
	t, _ := nearest(ctx)
	home := t.home()
	g := &goTask{handler: task}
	g.t.self, g.t.kind, g.t.owner = g, kindDetached, &home.s
	g.t.equip(context.WithoutCancel(ctx), newMore(&home.s, opts))
	g.t.more.name = name
	if !home.admit(&g.t) {
		panic("async: Detach after Shutdown: " + name)
	}
	if g.t.more.delivery != nil {
		g.t.launch()
	} else {
		go g.t.main()
	}
}

// admit registers a detached task; false once Shutdown has been called.
func (r *root) admit(t *task) bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.closing {
		return false
	}
	r.s.linkLocked(t)
	return true
}

// detachedEnded keeps the error of a detached task for Shutdown.
func (r *root) detachedEnded(v *verdict) {
	if v.err != nil {
		r.s.noteFailure(v.err)
	}
}

// Shutdown ends what is registered at the root of ctx: it refuses new detached
// tasks, waits for those there are, for root tasks and for stragglers until
// ctx is done, then cancels them with [ErrShutdown] and waits for their abort
// hooks and a moment longer. It returns the errors of detached tasks (the
// first 32) and, if somebody is left, a [*StragglerError] that names them.
// Scopes are not waited for, they have somebody who does; neither is the task
// that calls Shutdown.
func Shutdown(ctx context.Context) error {
	t, _ := nearest(ctx)
	r := t.home()
	r.s.mu.Lock()
	r.closing = true
	r.s.mu.Unlock()

	alone := func() bool { return len(r.others(t)) == 0 }
	if r.waitFor(ctx.Done(), alone) {
		return r.takeErrors(nil)
	}
	for _, o := range r.others(t) {
		o.cancelAll(canceled(ErrShutdown))
	}
	r.waitFor(nil, func() bool { return !hooksRun(r.others(t)) })
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if r.waitFor(grace.Done(), alone) {
		return r.takeErrors(nil)
	}
	return r.takeErrors(newStragglerError(&r.s, r.others(t), ErrShutdown))
}

// others returns whom Shutdown waits for: not scopes, and not what the caller
// is part of.
func (r *root) others(caller *task) []*task {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.childrenLocked(func(t *task) bool { return t.kind != kindBody && !caller.partOf(t) })
}

// hooksRun reports whether a hook of one of tasks, or of what they have
// started, runs and has time left.
func hooksRun(tasks []*task) bool {
	for len(tasks) > 0 {
		h := tasks[0].inner.Load()
		tasks = tasks[1:]
		if h == nil {
			continue
		}
		if h.hooksInTime.Load() > 0 {
			return true
		}
		h.mu.Lock()
		tasks = append(tasks, h.childrenLocked(func(*task) bool { return true })...)
		h.mu.Unlock()
	}
	return false
}

// wake has those look again who wait for something at r to change.
func (r *root) wake() {
	r.s.mu.Lock()
	if r.s.changed != nil {
		close(r.s.changed)
		r.s.changed = nil
	}
	r.s.mu.Unlock()
}

// waitFor waits until ok, which is asked whenever something has changed, or
// until stop is closed, and reports which.
func (r *root) waitFor(stop <-chan struct{}, ok func() bool) bool {
	for {
		r.s.mu.Lock()
		if r.s.changed == nil {
			r.s.changed = make(chan struct{})
		}
		changed := r.s.changed
		r.s.mu.Unlock()
		if ok() {
			return true
		}
		select {
		case <-changed:
		case <-stop:
			return ok()
		}
	}
}

// takeErrors returns the errors of detached tasks, each once, and left.
func (r *root) takeErrors(left error) error {
	r.s.mu.Lock()
	f := r.s.faults
	r.s.faults = nil
	r.s.mu.Unlock()
	if f == nil {
		return left
	}
	errs := f.errs
	if left != nil {
		errs = append(errs, left)
	}
	return joined(&r.t, errs, f.dropped)
}
