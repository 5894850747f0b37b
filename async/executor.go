package async

import "github.com/ambit-go/ambit/async/internal/tree"

// On runs a task on ex, or everything that is started in a scope: tasks, contenders,
// items, and what they start in turn.
//
//	err := async.Scope(ctx, crawl, async.On(pool))
//
// # Details
//
// Bodies of scopes run where they are called, and hooks and watchdogs on goroutines of
// their own.
//
// Starting blocks as long as ex.Execute does, or until the task is cancelled; under a
// [Limit] it does not block, and a task is handed to ex when it has its slot. Until ex
// begins with it a task is queued: if it is cancelled by then it settles with the
// cause and does not run. A task that ex refuses settles with a [*RejectedError]. One
// that ex drops without a word stays queued until it is cancelled. Nothing runs twice,
// whatever ex does.
//
// A task that waits keeps its place in ex. Work that waits, in the only place of a
// pool, for work on the same pool can only time out: use a Limit, whose slots are
// lent, on a pool that is large enough.
func On(ex Executor) Option {
	if ex == nil {
		panic("async: On(nil): leave the option out instead")
	}
	return bothOption{
		func(t *tree.TaskOptions) { t.On = ex },
		func(s *tree.ScopeOptions) { s.On = ex },
	}
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
