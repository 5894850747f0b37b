// Package bridge lets the packages of this module reach what package async does
// not export.
package bridge

import "context"

// NewRoot returns a context that carries a root of its own. lost is told of
// errors that nobody else can be told, said of what tasks say as they are stopped. Set
// by package async.
var NewRoot func(ctx context.Context, lost func(error), said func(text string)) context.Context

// OpenTop opens a scope at the root of ctx, which has none yet, and has what is in
// it seen by Live and Shutdown as if it stood at the root. join waits until all that
// was started in it has ended and returns how, as async.Group.Wait does. Set by
// package async.
var OpenTop func(ctx context.Context) (top context.Context, join func(ctx context.Context) error)

// Live returns the names of what is registered at the root of ctx, promises
// left out. Set by package async.
var Live func(ctx context.Context) []string

// ScopeOf returns the scope that ctx belongs to, nil if it carries none. A scope
// is a context, and the same one each time. Set by package async.
var ScopeOf func(ctx context.Context) context.Context

// Around returns the scope around scope, nil if there is none. Set by package
// async.
var Around func(scope context.Context) context.Context

// AtEnd has e told when scope ends, in turn with its exit hooks. It returns
// nil, and e is not told, if scope has ended. Set by package async.
var AtEnd func(scope context.Context, e Ender) Registration

// A Registration is what [AtEnd] has registered.
type Registration interface {
	// Remove takes the Ender off its scope, in constant time: it is not told
	// any more, and the scope keeps nothing of it. It reports whether this call
	// has done so. Once the Ender is being told, or was, Remove does nothing and
	// reports false. It may be called any number of times, by any goroutine.
	Remove() bool

	// Recall is Remove for an Ender that is to be used again: the Registration
	// keeps nothing of the scope, and Renew may be called if Recall has returned
	// true or the Ender has been told. While Recall or Renew is called no other
	// goroutine may use the Registration.
	Recall() bool

	// Renew registers the Ender once more, as AtEnd does. It reports false, and
	// the Ender is not told, if scope has ended.
	Renew(scope context.Context) bool
}

// Unused reports whether scope is as if nobody had used its context: all that was
// started in it has ended and nothing went wrong, nobody has asked for its Done
// channel, no exit hook and no Ender is registered but r, which may be nil, and
// it is not cancelled. So one more piece of work can be done in it instead of in
// a new scope. It is false if observers are to be told of each piece. Set by
// package async.
var Unused func(scope context.Context, r Registration) bool

// An Ender is told how a scope ends, on the goroutine that ends it. It must not
// block, panic or run users' code; for that it may register exit hooks.
type Ender interface {
	ScopeEnds(how Ending, outcome error)
}

// A Joiner is an Ender that takes time to end. The scope waits for it, as for
// an exit hook but without a time limit; only DetachAfter lets a scope return
// before.
type Joiner interface {
	Ender

	// Name names it.
	Name() string

	// Ended is asked after ScopeEnds. True: there is nothing to join.
	Ended() bool

	// Join is called after ScopeEnds, on a goroutine of its own, and blocks
	// until nothing is left. ctx has the values of the scope and is not cancelled
	// with it, but by Shutdown. An error is one of the scope's.
	Join(ctx context.Context) error

	// Left returns what still runs, to be named as stragglers. It does not block.
	Left() []Left
}

// Left is something that still runs.
type Left struct {
	Task  string
	Frame string // what a traceback prints of a function on its goroutine and of no other; "" if nothing does
}

// LeftUndone tells scope, which has not ended, that work which belonged to it
// was left undone, and why. If it was for the scope's own cancellation, err is
// no more than an echo of that. If several goroutines tell the same, first says true to
// one of them. It is called once, with the scope locked, in the step in which the scope
// is told: so who hears false knows that this has been done. Set by package async.
var LeftUndone func(scope context.Context, err error, first func() bool)

// An Ending says how a scope has ended.
type Ending uint8

// How a scope may have ended.
const (
	Well    Ending = iota // nothing failed, and it was not cancelled
	Failed                // something in it failed, or a limit of its own has passed
	Stopped               // it was told to stop from outside; outcome is why
)

// StopError returns nil while ctx is not done, then an error that matches both its
// Err and its Cause. Set by package async.
var StopError func(ctx context.Context) error

// Reject settles future, an *async.Future whose task an executor has accepted
// and will never run, with a RejectedError, as if the executor had refused the
// task. It does nothing if the task has begun or was cancelled. Set by package
// async.
var Reject func(future any, err error)

// Settled reports whether future, an *async.Future, has settled. It asks no context, so a lock
// may be held. Set by package async.
var Settled func(future any) bool

// A Withdrawer is an executor that is made for one task. It is told when the
// task was cancelled before it began: it need not be kept any longer.
type Withdrawer interface{ Withdraw(Token) }

// An Awaited is an executor that is made for one task. It is told of each wait for the
// future of the task, by the goroutine that is about to block, with the ctx of that. An
// error refuses the wait: it could never end. Otherwise over, if it is not nil, is called
// when the wait has ended.
type Awaited interface {
	Awaited(ctx context.Context, _ Token) (over func(), err error)
}

// Token keeps others from being Withdrawers, or Awaited, by accident.
type Token struct{}
