package tree

import (
	"context"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file ends what is registered at a root.

// Admit registers a detached task; false once Shutdown has been called.
func (r *Root) Admit(t *Task) bool {
	r.Scope.Mu.Lock()
	defer r.Scope.Mu.Unlock()
	if r.closing {
		return false
	}
	r.Scope.linkLocked(t)
	return true
}

// stragglers gives the tasks that look returns 100 ms to end, and returns the error that
// names those that do not, nil if there are none. It is asked again and again.
func (r *Root) stragglers(ctx context.Context, cause error, look func() []*Task) error {
	if len(look()) == 0 {
		return nil
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if r.waitFor(grace.Done(), lookAgain, func() bool { return len(look()) == 0 }) {
		return nil
	}
	return newLeftovers(&r.Scope, look(), cause).asError()
}

// below returns what is registered at r, less what caller is part of.
func (r *Root) below(caller *Task) []*Task {
	return slices.DeleteFunc(r.members(anyone), func(t *Task) bool { return standsIn(caller, t) })
}

func anyone(*Task) bool { return true }

// standsIn reports whether t is u or was started in it at any depth; also if u
// stands at the root for a scope that has returned without its tasks.
func standsIn(t, u *Task) bool {
	for ; t != nil; t = t.Owner.TaskOrNil() {
		if t == u || t.Owner != nil && t.Owner == u.Inner.Load() {
			return true
		}
	}
	return false
}

// awaited returns those below r that Shutdown waits for while ctx lasts: scopes, which
// have callers, only if ctx has a deadline.
func (r *Root) awaited(caller *Task, scopes bool) []*Task {
	return slices.DeleteFunc(r.below(caller), func(t *Task) bool { return t.Kind == KindScope && !scopes })
}

// nobodyLeft reports whether Shutdown has nobody to wait for. Once only groups are left,
// they are dismissed.
func (r *Root) nobodyLeft(caller *Task, scopes bool) bool {
	left := r.awaited(caller, scopes)
	if slices.ContainsFunc(left, func(t *Task) bool { return t.Kind != KindGroup }) {
		return false
	}
	for _, g := range left { // all are noted before one is told, see StoppedByNow
		g.Owner.Mu.Lock()
		g.More.dismissed = true
		g.Owner.Mu.Unlock()
	}
	r.dismissAll(left)
	return len(left) == 0
}

// cancelBelow cancels everything below r, and returns that. It is called again
// and again: a task that has not ended yet may start more.
func (r *Root) cancelBelow(caller *Task) []*Task {
	tasks := r.below(caller)
	cancels := func(t *Task) bool { return r.cancels(t, caller) }
	r.walks.Add(1)
	defer r.walks.Add(-1)
	r.cancelling.Store(&cancels)
	defer r.cancelling.CompareAndSwap(&cancels, nil)
	for _, t := range tasks {
		if t.Kind != KindScope || t.More == nil || !t.More.shielded { // as inside cancelAll
			cancelAll(t, Canceled(ErrShutdown))
		}
		if g, ok := t.Self.(gathering); ok {
			g.Close()
		}
	}
	return tasks
}

// cancels reports whether cancelBelow and cancelAll come to t, which may be at any depth.
func (r *Root) cancels(t, caller *Task) bool {
	for t.Owner != nil && t != r.Top && (t.More == nil || !t.More.shielded || isJoin(t)) {
		if t.Owner == &r.Scope || t.Owner.Task == r.Top {
			return !standsIn(caller, t)
		}
		t = t.Owner.Task
	}
	return false
}

// hooksRun reports whether a hook of one of tasks, or of what they have
// started, runs and has time left.
func hooksRun(tasks []*Task) bool {
	for len(tasks) > 0 {
		h := tasks[0].Inner.Load()
		tasks = tasks[1:]
		if h == nil {
			continue
		}
		if h.hooksInTime.Load() > 0 {
			return true
		}
		h.Mu.Lock()
		tasks = append(tasks, childrenLocked(h, func(*Task) bool { return true })...)
		h.Mu.Unlock()
	}
	return false
}

// changes returns channels that are closed when something below r has changed. The
// second is nil if r has no top.
func (r *Root) changes() (atRoot, inTop <-chan struct{}) {
	if r.Top != nil {
		inTop = changeOf(r.Top.Scope())
	}
	return changeOf(&r.Scope), inTop
}

// waitFor waits until ok, which is asked whenever something at r has changed
// and, if every is not 0, that often, or until stop is closed. It reports which.
func (r *Root) waitFor(stop <-chan struct{}, every time.Duration, ok func() bool) bool {
	var tick <-chan time.Time
	if every > 0 {
		t := time.NewTicker(every)
		defer t.Stop()
		tick = t.C
	}
	for {
		atRoot, inTop := r.changes() // before the question: a change after it is seen
		if ok() {
			return true
		}
		select {
		case <-atRoot:
		case <-inTop:
		case <-tick:
		case <-stop:
			return ok()
		}
	}
}

// outcome returns the errors of detached tasks, each once, and left, the error
// that names the tasks that are left.
func (r *Root) outcome(left error) error {
	r.Scope.Mu.Lock()
	sum := r.Scope.Tally.Sum(tally.End{Last: left})
	r.Scope.Tally = nil
	r.Scope.Mu.Unlock()
	return oneError(&r.t, &sum, nil)
}

// cancelAll cancels t and everything that was started in it, at any depth,
// whatever ctx it was started with, but for hooks and shielded stretches: these
// have a time limit of their own. The join of a worker of package scheduler has
// none, so it is cancelled, too. Only [Shutdown] does this.
func cancelAll(t *Task, stop *StopError) {
	for all := []*Task{t}; len(all) > 0; {
		t, all = all[0], all[1:]
		s := t.Scope()
		s.Cancel(stop)
		s.Mu.Lock()
		all = append(all, childrenLocked(s, func(c *Task) bool {
			return c.More == nil || !c.More.shielded || isJoin(c)
		})...)
		for p := s.promises; p != nil; p = p.next {
			all = append(all, p)
		}
		s.Mu.Unlock()
	}
}

// shutdownGrace is how long Shutdown gives cancelled tasks to return once
// their abort hooks have ended.
const shutdownGrace = 100 * time.Millisecond

// lookAgain is how often Shutdown looks for what those it has cancelled have
// started since.
const lookAgain = shutdownGrace / 10

// Shutdown ends what is registered at the root of ctx, less what the caller is part of.
func Shutdown(ctx context.Context) error {
	t, _ := Nearest(ctx)
	r := t.Home()
	r.Scope.Mu.Lock()
	r.closing = true
	r.Scope.Mu.Unlock()

	_, bounded := ctx.Deadline()
	nobodyLeft := func() bool { return r.nobodyLeft(t, bounded) }
	if ctx.Err() == nil && r.waitFor(ctx.Done(), 0, nobodyLeft) && ctx.Err() == nil {
		return r.outcome(r.stragglers(ctx, nil, func() []*Task { return r.below(t) }))
	}
	r.waitFor(nil, lookAgain, func() bool { return !hooksRun(r.cancelBelow(t)) })
	return r.outcome(r.stragglers(ctx, ErrShutdown, func() []*Task { return r.cancelBelow(t) }))
}
