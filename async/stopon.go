package async

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file stops tasks and scopes when a channel is closed or another context is done.

// StopOn cancels a task or scope with cause (nil: [context.Canceled]) when ch is
// closed: a bridge from code that says by a channel that it ends.
//
//	err := async.Scope(ctx, serve, async.StopOn(server.closing, ErrServerClosed))
//
// # Details
//
// StopOn may be given several times; the first channel that is closed counts. If ch is
// closed already the context is done when the handler or body is called. A task that
// is queued is withdrawn and settles with cause; a task with [Restart] is stopped as a
// whole. A task under [context.WithoutCancel] is stopped by its own StopOn, too.
//
// A scope that is stopped so, and is kept from anything by that, returns a
// [*ScopeError] with cause as its Cause. A task that ends with an error because its
// own StopOn has stopped it has failed, as with [Timeout]; one that returns nil has
// not.
//
// Only that ch is closed counts: what somebody sends to ch is received and dropped.
// One goroutine waits for ch, from the call that starts the task or scope, while the
// task queues, too, until the task settles or the scope ends, which joins the
// goroutine. A promise that nobody resolves keeps it. In a bubble of testing/synctest
// ch must be made in that bubble, or the clock of the bubble stands still. A nil ch
// panics.
func StopOn(ch <-chan struct{}, cause error) Option {
	if ch == nil {
		panic("async: StopOn(nil): such a channel is never closed; leave the option out instead")
	}
	if cause == nil {
		cause = context.Canceled
	}
	return stopBy(closing{ch, tree.Canceled(cause)})
}

// StopWith cancels a task or scope when other is done, with the cause of other, for
// work that belongs to one ctx and has to end with another one, too.
//
//	err := async.Scope(ctx, handle, async.StopWith(session.Context()))
//
// # Details
//
// The cause of other is asked when other is done and not before: this is what tells
// StopWith from the mistake StopOn(other.Done(), context.Cause(other)), which
// evaluates the cause at once, while there is none, and so stops with
// [context.Canceled]. Nothing but the end of other is taken over, neither values nor
// the deadline: Err of the stopped context is context.Canceled, also when the deadline
// of other has passed.
//
// All else is as with [StopOn], with which StopWith may be combined, but for the
// goroutine: one is started when other is done. For a context type of your own package
// context starts one that waits, see [context.AfterFunc]. A nil other panics.
func StopWith(other context.Context) Option {
	if other == nil {
		panic("async: StopWith(nil): leave the option out instead")
	}
	return stopBy(ending{other})
}

func stopBy(source stopSource) Option {
	return bothOption{
		func(t *tree.TaskOptions) { t.Hang().Stops = newStopper(source, t.Added().Stops) },
		func(s *tree.ScopeOptions) { s.Stops = newStopper(source, s.Stops) },
	}
}

// A stopSource says once that something is to stop, and why.
type stopSource interface {
	stop() *tree.StopError // nil: not yet
	// whenStopped calls f, on a goroutine of its own, when stop says why, or at once if
	// it does already. The function returned is as that of context.AfterFunc: when it
	// returns true, no goroutine is left and f was not, and is not, called.
	whenStopped(f func()) (unwatch func() bool)
}

// ending is the source of StopWith.
type ending struct{ other context.Context }

func (e ending) stop() *tree.StopError {
	if e.other.Err() == nil {
		return nil
	}
	return tree.Canceled(context.Cause(e.other))
}

func (e ending) whenStopped(f func()) func() bool { return context.AfterFunc(e.other, f) }

// closing is the source of StopOn.
type closing struct {
	ch     <-chan struct{}
	reason *tree.StopError
}

func (c closing) stop() *tree.StopError {
	for {
		select {
		case _, open := <-c.ch:
			if !open {
				return c.reason
			}
		default:
			return nil
		}
	}
}

func (c closing) whenStopped(f func()) func() bool {
	quit, closed := make(chan struct{}), make(chan bool, 1)
	go c.wait(quit, closed, f)
	return func() bool {
		close(quit)
		return !<-closed
	}
}

// wait is the goroutine of StopOn. It says to closed whether it calls f.
func (c closing) wait(quit <-chan struct{}, closed chan<- bool, f func()) {
	for {
		select {
		case <-quit:
			closed <- false
			return
		case _, open := <-c.ch:
			if !open {
				closed <- true
				f()
				return
			}
		}
	}
}

// A stopper cancels one task or scope when its source says so.
type stopper struct {
	source stopSource
	next   *stopper // another of the same task; nil: none

	unwatch func() bool     // nil: nothing is watched. Guarded by the mu of the task's scope until that has ended
	done    chan struct{}   // closed by the goroutine that cancels the task, last
	fired   tree.AtomicBool // that goroutine cancels the task, or has done so
}

func newStopper(source stopSource, others tree.Stops) *stopper {
	next, _ := others.(*stopper)
	return &stopper{source: source, next: next, done: make(chan struct{})}
}

// Watch starts w, and those that follow, unless one of them says that t is stopped
// already.
//
// Somebody else may cancel t meanwhile, and t may end by that if t queues. Whoever ends t
// marks the inner scope as ended under the lock under which unwatch is set: the end sees
// what is watched, or we see that the scope has ended.
func (w *stopper) Watch(t *tree.Task) {
	s := t.Scope()
	for each := w; each != nil; each = each.next {
		if stop := each.source.stop(); stop != nil {
			s.Cancel(stop)
			return
		}
		unwatch := each.source.whenStopped(func() { each.fire(s) }) // asks contexts of users: not under the lock
		s.Mu.Lock()
		ended := s.Ended
		if !ended {
			each.unwatch = unwatch
		}
		s.Mu.Unlock()
		if ended {
			each.join(unwatch)
			return
		}
	}
}

// fire cancels s, on the goroutine that the source has started.
func (w *stopper) fire(s *tree.Scope) {
	if tree.Exploring {
		defer tree.Starts("stop", w)()
	}
	defer close(w.done)
	w.fired.Store(true)
	s.Cancel(w.source.stop())
}

// End ends w, and those that follow, and joins their goroutines. One that has cancelled
// the task may be the caller's, if that settles a task that has no handler or has not
// begun: onItsOwn says that this may be.
func (w *stopper) End(onItsOwn bool) {
	for ; w != nil; w = w.next {
		if w.unwatch != nil && !(onItsOwn && w.fired.Load()) {
			w.join(w.unwatch)
		}
	}
}

func (w *stopper) join(unwatch func() bool) {
	if !unwatch() {
		<-w.done
	}
}
