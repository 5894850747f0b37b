package async

import (
	"context"
	"weak"
)

// This file stops tasks and scopes when a channel is closed.
//
// A task with such a channel is a level: what is in it asks it, as it asks a ctx of
// somebody else. As long as contexts are only asked, by Err, the channel is looked
// at. What must be told, a wait or a hook, has every level around it watch its
// channels, each by a goroutine, which cancels the level as anything else does.

// A TaskScopeOption applies to tasks, to scopes and to groups.
type TaskScopeOption interface {
	TaskOption
	ScopeOption
}

type taskScopeOption struct {
	taskOption
	scopeOption
}

// StopOn cancels a task or scope with cause (nil: [context.Canceled]) when ch is
// closed: a bridge from code that says by a channel that it ends. It may be given
// several times, then the first channel that is closed counts. A task that is queued
// is withdrawn then and settles with cause; of one with [Restart] the whole is
// stopped. A task that is protected by [context.WithoutCancel] is stopped by its own
// StopOn, too.
//
// A scope that is stopped so, and is kept from anything by that, returns a
// [*ScopeError] with that Cause. A task that ends with an error because its own
// StopOn has stopped it has failed, as with [Timeout]; one that returns nil has not.
//
// Only that ch is closed counts: what somebody sends to it is received and dropped.
// Err looks at ch. A goroutine that waits for it is started when something is to be
// told of it: when Done is called, something waits, is queued, or is a promise, or
// if there is a hook of [OnAbort], or [Timeout], [OnStall] or [DetachAfter], or if
// more than 16 of what has a StopOn are nested. From the call of Done on, and in
// such a nest, Err tells of it a moment after ch was closed, when that goroutine has
// run. It has ended when the task settles or the scope returns. A nil ch panics.
func StopOn(ch <-chan struct{}, cause error) TaskScopeOption {
	if ch == nil {
		panic("async: StopOn(nil): such a channel is never closed; leave the option out instead")
	}
	if cause == nil {
		cause = context.Canceled
	}
	return taskScopeOption{
		func(t *taskOptions) { t.stopOn = newStopOn(ch, cause, t.stopOn) },
		func(s *scopeOptions) { s.stopOn = newStopOn(ch, cause, s.stopOn) },
	}
}

// A stopOn is one channel of one task or scope.
type stopOn struct {
	ch     <-chan struct{}
	sg     stopError
	next   *stopOn // another of the same task
	around int32   // how many levels are around the task, which may look at them all. Set before the task is shared.

	watched atomicBool    // its goroutine was started; set under the mu of the task's scope
	fired   atomicBool    // its goroutine cancels the task, or has done so
	bubble  bool          // the channels are of a synctest bubble: nobody outside may close them
	quit    chan struct{} // closed when the task ends, by whoever seals its scope
	done    chan struct{} // closed by its goroutine, last
}

func newStopOn(ch <-chan struct{}, cause error, next *stopOn) *stopOn {
	return &stopOn{ch: ch, sg: *canceled(cause), next: next, bubble: inBubble(clock()), quit: make(chan struct{}), done: make(chan struct{})}
}

// look returns why a task with o, and those that follow, is stopped, nil if no
// channel is closed.
func (o *stopOn) look() *stopError {
	for ; o != nil; o = o.next {
		select {
		case _, open := <-o.ch:
			if !open {
				return &o.sg
			}
		default:
		}
	}
	return nil
}

// ownStop returns why t is stopped by a channel of its own, nil if it is not.
func (t *task) ownStop() *stopError {
	if t.more == nil {
		return nil
	}
	return t.more.stopOn.look()
}

// isStoppedAtLevels is isStopped for a scope with levels around it that only look. It
// goes from level to level until one is told by package context.
func (s *scope) isStoppedAtLevels() bool {
	for {
		if s.sig.Load() != nil {
			return true
		}
		if std := s.std.Load(); std != nil {
			return std.Err() != nil
		}
		t := s.t
		if t.ownStop() != nil {
			return true
		}
		if t.owner == nil || !t.cancelledWithOwner() {
			ctx := t.derived()
			return ctx != nil && ctx.Err() != nil
		}
		level := t.owner.from.task
		if level == nil {
			return false
		}
		s = level.inner.Load() // it has a scope, which we are in
	}
}

// mostLooks is how many levels are looked at by Err, and by all that asks as often.
const mostLooks = 16

// boundLooks is called when s, which may be that of a level, was made. One in
// mostLooks levels has a standard context from the first: it is told when a channel
// around it is closed, and whoever asks need not look further.
func (s *scope) boundLooks() {
	if m := s.t.more; m != nil && m.stopOn != nil && m.stopOn.around%mostLooks == mostLooks-1 {
		s.context()
	}
}

// watchLevels is called when t, or something in its context, must be told of a
// cancellation: every level around it watches its channels from then on. One that
// does already has seen to those around it.
func (t *task) watchLevels() {
	for level := t.origin().level; level != nil; level = level.levelAbove() {
		if !level.watch() {
			return
		}
	}
}

// levelAbove returns the next level around the level t.
func (t *task) levelAbove() *task {
	if t.owner == nil || !t.cancelledWithOwner() {
		return nil
	}
	return t.owner.from.level
}

// watch starts the goroutines of the level t; false if they were before, or t has
// ended.
func (t *task) watch() (started bool) {
	first := t.more.stopOn
	if first.watched.Load() {
		return false
	}
	s := t.scope()
	if s == endedScope {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Sealing s marks it as ended under this lock, and then has the goroutines end:
	// it sees those that we start, or we see that it has ended.
	if s.ended || first.watched.Load() {
		return false
	}
	for o := first; o != nil; o = o.next {
		o.watched.Store(true)
		go o.wait(s.stopper())
	}
	return true
}

// stopper returns what cancels s. A group is not kept by what it watches.
func (s *scope) stopper() func(sg *stopError) {
	if s.t.kind != kindGroup {
		return func(sg *stopError) { s.cancel(sg) }
	}
	group := weak.Make(s.t.self.(*Group))
	return func(sg *stopError) {
		if g := group.Value(); g != nil {
			g.s.cancel(sg)
		}
	}
}

// wait is the goroutine of o.
func (o *stopOn) wait(cancel func(sg *stopError)) {
	if exploring {
		defer starts("stop", o)()
	}
	defer close(o.done)
	for {
		select {
		case <-o.quit:
			return
		case _, open := <-o.ch:
			if !open {
				o.fired.Store(true)
				cancel(&o.sg)
				return
			}
		}
	}
}

// release has the goroutines of o, and those that follow, end.
func (o *stopOn) release() {
	for ; o != nil; o = o.next {
		close(o.quit)
	}
}

// join waits until they have ended. One that has cancelled the task may be the
// caller's, if that settles a task that has no handler or has not begun: onItsOwn
// says that this may be.
func (o *stopOn) join(onItsOwn bool) {
	for ; o != nil; o = o.next {
		if o.watched.Load() && !(onItsOwn && o.fired.Load()) {
			<-o.done
		}
	}
}

// endUnrun ends the inner scope of t, which never ran, or never had a handler. Most
// often there is none, and from now on none can be made.
func (t *task) endUnrun() {
	if !t.inner.CompareAndSwap(nil, endedScope) {
		t.inner.Load().seal()
	}
	if t.more != nil {
		t.more.stopOn.join(true)
	}
}
