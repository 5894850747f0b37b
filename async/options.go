package async

import (
	"context"
	"time"
)

// defaultHookTimeout bounds every hook that sets no HookTimeout of its own.
const defaultHookTimeout = 5 * time.Second

// A TaskOption changes how one task is run. Later options win over earlier ones.
type TaskOption interface {
	WatchOption
	applyTask(*taskOptions)
}

// A ScopeOption changes how a scope is run. Later options win over earlier ones.
type ScopeOption interface {
	applyScope(*scopeOptions)
}

// An Option applies to tasks, to scopes, and to work on many items.
type Option interface {
	TaskOption
	ScopeOption
	ForkOption
}

// taskOptions are the settings of one task; the zero value is the default.
type taskOptions struct {
	name        string
	timeout     time.Duration // 0: none
	grace       time.Duration
	hookTimeout time.Duration // 0: defaultHookTimeout
	onAbort     func(ctx context.Context, cause error) error
	discard     any // func(T), checked against the future's type
	daemon      bool
	leader      bool
	stops       *stopper   // nil: none
	heart       *heart     // nil: no beats are expected
	on          Executor   // nil: inherited
	priority    int        // inherited if it is not set
	restart     *restarter // nil: what has ended is not started again
}

// scopeOptions are the settings of one scope; the zero value is the default.
type scopeOptions struct {
	name        string
	timeout     time.Duration // 0: none
	hookTimeout time.Duration // 0: inherited
	limit       int           // 0: inherited
	on          Executor      // nil: inherited
	observer    Observer
	stall       stall
	detach      time.Duration
	detaches    bool
	onFailure   func(error) error
	onPanic     func(*PanicError) error
	stops       *stopper // nil: none
}

// newScopeOptions returns the settings that opts make, nil for none.
func newScopeOptions(opts []ScopeOption) *scopeOptions {
	if len(opts) == 0 {
		return nil
	}
	o := new(scopeOptions)
	for _, opt := range opts {
		mustNotBeNil(opt)
		opt.applyScope(o)
	}
	return o
}

type taskOption func(*taskOptions)

func (o taskOption) applyTask(t *taskOptions) { o(t) }
func (o taskOption) applyPoll(p *pollOptions) { p.task = append(p.task, o) }

func (o taskOption) applyWatch(w *watchOptions) { w.task = append(w.task, o) }

type scopeOption func(*scopeOptions)

func (o scopeOption) applyScope(s *scopeOptions) { o(s) }

type bothOption struct {
	taskOption
	scopeOption
}

func (o bothOption) applyFork(f *forkOptions) {
	f.task = append(f.task, o.taskOption)
	f.scope = append(f.scope, o.scopeOption)
}

// Name names a task or a scope in errors, events and reports. Defaults to the
// name of the function, behind the name of the nearest named scope, if any.
func Name(name string) Option {
	return bothOption{
		func(t *taskOptions) { t.name = name },
		func(s *scopeOptions) { s.name = name },
	}
}

// Timeout cancels a task or scope with a [*TimeoutError] as the cause, d after
// it has started to run. Time spent in the queue of a Limit does not count.
// 0, the default, sets no limit; a negative d has already expired.
func Timeout(d time.Duration) Option {
	return bothOption{
		func(t *taskOptions) { t.timeout = d },
		func(s *scopeOptions) { s.timeout = d },
	}
}

// HookTimeout is how long the context of a hook lasts: of a task's abort hook,
// or of a scope's exit hooks and the hooks of everything started inside. An exit
// hook that has not returned by then is listed as a [*TimeoutError] of that hook,
// whatever it returns later; an abort hook is a straggler. Both are waited for.
// Defaults to 5 s; d <= 0 means the default.
func HookTimeout(d time.Duration) Option {
	d = max(d, 0)
	return bothOption{
		func(t *taskOptions) { t.hookTimeout = d },
		func(s *scopeOptions) { s.hookTimeout = d },
	}
}

// Grace is how long an Await that has expired goes on waiting for the aborted
// task to settle. Defaults to 0.
func Grace(d time.Duration) TaskOption {
	return taskOption(func(t *taskOptions) { t.grace = max(d, 0) })
}

// OnAbort sets the task's abort hook. f is called at most once, on a goroutine
// of its own and beside the handler, when the task's context is cancelled
// while the handler runs: after the context, with the cause. A task started
// in a context that is already cancelled has its hook called as it starts.
// f is not called once the handler has returned, nor for a task that is still
// queued. With [Restart] all of this is said of each run.
//
// The ctx of f keeps the task's values, is not cancelled with it, and lasts
// HookTimeout. No wait is held up by f beyond Grace; the task settles only
// after f has returned. An error or panic of f is joined to the task's error.
func OnAbort(f func(ctx context.Context, cause error) error) TaskOption {
	if f == nil {
		panic("async: OnAbort(nil): leave the option out instead")
	}
	return taskOption(func(t *taskOptions) { t.onAbort = f })
}

// OnDiscard sets what happens to a value that nobody will be given, so that
// connections and files are closed: every value is given to a waiter, or f is
// called with it exactly once. That is a value
//
//   - that comes after a waiter was told of an expiry, or after [Future.Cancel],
//   - of a Resolve that was not the first,
//   - beside an error of what the handler has started,
//   - that nobody was given when the scope ends; of a root task, when its future
//     is collected.
//
// f is called on a goroutine of its own, with no lock held, and is waited for: before
// that Resolve returns, before the task settles, or before the scope ends. Later
// waits are given the error that the first waiter was told, else [ErrScopeEnded].
// A panic of f is an error of the scope.
//
// A value that nobody awaits is kept until its scope ends, which in the scope of a server
// is for ever: there await the future, or have the handler close what nobody wants.
//
// A nil f panics, and so does starting a future of another type than f takes.
func OnDiscard[T any](f func(T)) TaskOption {
	if f == nil {
		panic("async: OnDiscard(nil): leave the option out instead")
	}
	return taskOption(func(t *taskOptions) { t.discard = f })
}

// Daemon marks a task that serves the others: when the body and all ordinary
// tasks of its scope have ended it is cancelled with [ErrDismissed], and then
// joined like any other.
//
// An error that it, or anything started in it, returns after its scope has cancelled
// it, by that or otherwise, is not a failure: "http: Server closed" and "signal:
// killed" are how services stop. Observers are told of it. A panic raises as that of
// any task; an error from before, and its own [Timeout] or [Heartbeat], are failures.
// An error that must be heard belongs in an exit hook, its own or that of anything in
// it; see [OnExit].
func Daemon() TaskOption { return taskOption(func(t *taskOptions) { t.daemon = true }) }

// Limit bounds how many tasks of the scope, and of the scopes inside it, run
// at the same time; how many have been started is not bounded, and starting
// never blocks.
//
// A task lends its slot while it waits in this package under its own ctx: for a
// future, for a scope or a sequence inside it, in Sleep, between probes. So nested
// work cannot deadlock, not even with n = 1. When the wait is over the task queues
// for its slot before any task that has not begun. A wait that is cut short by its
// limit or its ctx returns at once, even over n, and the next free slot makes up
// for it. A task that waits with the ctx of another task, or in a channel operation,
// keeps its slot. Goroutines that a handler starts by a go statement are not
// counted. A slot is held until the handler returns.
//
// Queued tasks start deepest first, then those of the greatest [Priority], then in
// the order in which they came. A queued task whose context is cancelled settles
// with the cause, and never runs; one that finds a free slot as it is started does
// run. The body of the scope needs no slot. With a Limit inside another, a task
// needs a slot of both, the inner first. To bound the use of a resource, use a
// semaphore. n < 1 panics.
//
// For [ForkJoin], [ForEach], [Map] and [AsCompleted] it bounds how many of the
// items of that call are worked on at the same time.
func Limit(n int) ScopeForkOption {
	if n < 1 {
		panic("async: Limit(n): n must be at least 1; leave the option out for no limit")
	}
	return limit(n)
}

// A ScopeForkOption applies to scopes and to work on many items.
type ScopeForkOption interface {
	ScopeOption
	ForkOption
}

type limit int

func (n limit) applyScope(s *scopeOptions) { s.limit = int(n) }
func (n limit) applyFork(f *forkOptions)   { f.limit = int(n) }

// Observe tells o of the start, the end and a panic of everything that runs in
// the scope: tasks, hooks, scopes inside it and what runs in those; not of the
// scope itself, nor of a task that was cancelled before it ran. An outer
// scope's observer is told too.
func Observe(o Observer) ScopeOption {
	if f, isFunc := o.(ObserverFunc); o == nil || isFunc && f == nil {
		panic("async: Observe(nil): leave the option out instead")
	}
	return scopeOption(func(s *scopeOptions) { s.observer = o })
}

// OnStall calls f if tasks are left d after the scope should have come to its
// end. That is at most twice: d after body has returned, if the scope is not
// cancelled by then, and d after the scope was cancelled. The first is the
// commonest stall, a loop that nobody has told to stop.
//
// The error names the tasks that are left, with stacks. Its Cause is why they were
// told to stop, nil if they were not. f is called on a goroutine of its own, with
// no lock held, and the scope does not end before it has returned. It is not called
// once Scope has returned. A panic of f is an error of the scope. d <= 0 calls f
// at once, and a nil f panics.
//
// A look at the stacks stops the whole program for a moment; scopes that stall
// at about the same time share one.
func OnStall(d time.Duration, f func(*StragglerError)) ScopeOption {
	if f == nil {
		panic("async: OnStall(nil): leave the option out instead")
	}
	return scopeOption(func(s *scopeOptions) { s.stall = stall{d, f} })
}

// DetachAfter lets a scope return although tasks are left: d after its
// cancellation or, if it was not cancelled, after an exit hook has overrun its
// [HookTimeout], once body has returned, Scope returns a [*StragglerError] that
// names them, with stacks, beside what else went wrong. It is the way out when
// code that cannot be mended ignores its context. Workers of package scheduler
// and exit hooks that have overrun their [HookTimeout] are let go, too; an exit
// hook that is in time is waited for.
//
// What is left moves to the root of ctx and stays on record there under the name
// of the scope, where [Shutdown] waits for it. When the last has ended the exit
// hooks run. What goes wrong from then on is the root's to report. d <= 0 lets
// go at once. Without the option a scope waits as long as it takes.
func DetachAfter(d time.Duration) ScopeOption {
	return scopeOption(func(s *scopeOptions) { s.detach, s.detaches = d, true })
}

// OnFailure asks f about the error of every Go task that fails. Where f
// returns nil the scope carries on, as a server does when one connection
// fails; an error fails the scope with it. f may be called by several
// goroutines at once, with no lock held. It is not asked about panics, Goexit, or
// tasks that ended because the scope was cancelled. If f itself panics, that and
// the error it was asked about are the scope's. A nil f panics.
func OnFailure(f func(error) error) ScopeOption {
	if f == nil {
		panic("async: OnFailure(nil): leave the option out instead")
	}
	return scopeOption(func(s *scopeOptions) { s.onFailure = f })
}
