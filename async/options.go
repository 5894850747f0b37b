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
	stops       stops    // nil: none
	heart       pulse    // nil: no beats are expected
	on          Executor // nil: inherited
	priority    int      // inherited if it is not set
	restart     rerunner // nil: what has ended is not started again
}

// What words add to a task. The tree calls these, and knows no word by name.
type (
	// stops cancel a task when something says so that they watch.
	stops interface {
		watch(t *task)     // before the handler of t is called; t has more, and is a member of its owner
		end(onItsOwn bool) // when t ends; onItsOwn: the caller may be what has cancelled t
	}
	// A pulse expects signs of life of a handler.
	pulse interface {
		start(s *scope) // the handler of s is about to be called
		again() pulse   // for another run of the handler
	}
	// A rerunner calls the handler of a task again when it has failed.
	rerunner interface {
		standBefore(t *task, m *more) // t is about to be started with m
	}
)

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
	stops       stops // nil: none
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

// An Executor runs a task on some goroutine. Execute may block until it can,
// and may refuse with an error. If it has a method
//
//	TryExecute(task func()) bool
//
// too, which does not block, that is asked first. Any pool of goroutines is an
// Executor with an adapter of a few lines.
//
// The name and the shape are those of java.util.concurrent.
type Executor interface {
	Execute(task func()) error
}

// A ForkOption changes how items are worked on. [Name], [Timeout] and
// [HookTimeout] hold for the call as a whole.
type ForkOption interface{ applyFork(*forkOptions) }

type forkOptions struct {
	task     []TaskOption  // for the future of ForkJoin
	scope    []ScopeOption // for the scope of the others
	limit    int           // 0: none
	failFast bool
	worker   []TaskOption // of the workers that do the items
}

// A PollOption changes how something is polled. Every [TaskOption] is one.
type PollOption interface{ applyPoll(*pollOptions) }

type pollOptions struct {
	task     []TaskOption
	attempts int // 0: no limit
	tolerate int
	late     bool // the first probe comes after an interval
	fixed    bool // at a fixed rate
	restart  bool // applies to neither polls nor Retry
}

// A WatchOption changes how something is watched. Every [TaskOption] is one,
// and holds for the handler's task. Each applies to polls, too.
type WatchOption interface {
	PollOption
	applyWatch(*watchOptions)
}

type watchOptions struct {
	task     []TaskOption
	tolerate int
}

// A stall is what OnStall was given.
type stall struct {
	after time.Duration
	call  func(*StragglerError)
}
