package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is about choosing among several tasks. The rules that all these
// functions share stand with each of them. The engine is in choice.go.

// Race runs tasks beside each other and settles as the first of them does: with its
// value, or with its error.
//
//	page := async.Race(ctx, fromCache, fromServer)
//
// # Details
//
// Race follows the rules of a choice under Choosing in the documentation of the
// package. Among no tasks the outcome is [ErrNoTasks].
func Race[T any](ctx context.Context, tasks ...func(context.Context) (T, error)) *Future[T] {
	if len(tasks) == 0 {
		return settledChoice(ctx, "async.Race", *new(T), ErrNoTasks)
	}
	return choose(ctx, "async.Race", 0, tasks, firstSettled[T]{})
}

// Any runs tasks beside each other and settles with the value of the first that
// succeeds, or, when all have failed, with every error.
//
//	conn := async.Any(ctx, dialHere, dialThere)
//
// # Details
//
// Any follows the rules of a choice under Choosing in the documentation of the
// package. Among no tasks the outcome is [ErrNoTasks].
func Any[T any](ctx context.Context, tasks ...func(context.Context) (T, error)) *Future[T] {
	return anyOf(ctx, "async.Any", 0, tasks)
}

// Hedge is [Any] for tasks that are costly: it starts the first, and the next whenever
// delay has passed since the last start or a task has failed, until one succeeds.
//
//	page := async.Hedge(ctx, 50*time.Millisecond, fromHere, fromThere)
//
// # Details
//
// When the choice is cancelled no more are started. A delay of 0 or less starts all at
// once. Else Hedge follows the rules of a choice under Choosing in the documentation
// of the package. Among no tasks the outcome is [ErrNoTasks].
//
// The idea is that of the backup requests in Dean and Barroso, The Tail at Scale
// (2013).
func Hedge[T any](ctx context.Context, delay time.Duration, tasks ...func(context.Context) (T, error)) *Future[T] {
	return anyOf(ctx, "async.Hedge", delay, tasks)
}

func anyOf[T any](
	ctx context.Context, name string, delay time.Duration, tasks []func(context.Context) (T, error),
) *Future[T] {
	if len(tasks) == 0 {
		return settledChoice(ctx, name, *new(T), ErrNoTasks)
	}
	return choose(ctx, name, delay, tasks, firstGood[T]{})
}

// Until runs tasks beside each other and settles with the outcome, a value or an
// error, of the first that wins says true of.
//
//	wins := func(r async.Result[int]) bool { return r.Index == leader || r.Err != nil }
//	first := async.Until(ctx, wins, lead, help)
//
// # Details
//
// If wins says true of none, the outcome is every error, or [ErrNoWinner] if there is
// none. Until is for roles: in the call above a leader decides by ending, a helper
// only by failing.
//
// wins is never called by two goroutines at once, nor after the choice is made. If it
// panics, that is the outcome. A nil wins panics.
//
// Else Until follows the rules of a choice under Choosing in the documentation of the
// package. Among no tasks the outcome is [ErrNoTasks].
func Until[T any](
	ctx context.Context, wins func(Result[T]) bool, tasks ...func(context.Context) (T, error),
) *Future[T] {
	if wins == nil {
		panic("async: Until with a nil predicate: pass what is to be called")
	}
	if len(tasks) == 0 {
		return settledChoice(ctx, "async.Until", *new(T), ErrNoTasks)
	}
	return choose(ctx, "async.Until", 0, tasks, winner[T]{wins})
}

// Quorum runs tasks beside each other and settles when k of them have succeeded, with
// their values in the order of the tasks, or as soon as that has become impossible,
// with an error that matches [ErrNoQuorum] and every error so far.
//
//	stored := async.Quorum(ctx, 2, writeA, writeB, writeC)
//
// # Details
//
// k < 1 panics; with fewer than k tasks it fails at once and starts none. Else Quorum
// follows the rules of a choice under Choosing in the documentation of the package.
// Among no tasks the outcome is [ErrNoTasks].
func Quorum[T any](ctx context.Context, k int, tasks ...func(context.Context) (T, error)) *Future[[]T] {
	switch {
	case k < 1:
		panic("async: Quorum of k < 1: k is how many tasks must succeed")
	case len(tasks) == 0:
		return settledChoice(ctx, "async.Quorum", []T(nil), ErrNoTasks)
	case k > len(tasks):
		return settledChoice(ctx, "async.Quorum", []T(nil), ErrNoQuorum)
	}
	return choose(ctx, "async.Quorum", 0, tasks, enoughGood[T]{k})
}

// All runs tasks beside each other and settles with their values in the order of the
// tasks, or, as soon as one fails, with its error.
//
//	rates := async.All(ctx, euro, dollar, yen)
//
// # Details
//
// All follows the rules of a choice under Choosing in the documentation of the
// package. All of no tasks is empty.
func All[T any](ctx context.Context, tasks ...func(context.Context) (T, error)) *Future[[]T] {
	if len(tasks) == 0 {
		return settledChoice(ctx, "async.All", []T{}, nil)
	}
	return choose(ctx, "async.All", 0, tasks, allGood[T]{})
}

// Settle runs tasks beside each other and settles when all have ended, with every
// outcome in the order of the tasks.
//
//	results, err := async.Settle(ctx, mail, text, push).Await(ctx, time.Minute)
//
// # Details
//
// The error of the future is nil, the errors are in the results; if nobody is given
// these, they fail the scope. A panic or Goexit of a task is the error of its result.
//
// Else Settle follows the rules of a choice under Choosing in the documentation of the
// package, but there are no losers, and a task that ignores its context holds the
// outcome up. Settle of no tasks is empty.
func Settle[T any](ctx context.Context, tasks ...func(context.Context) (T, error)) *Future[[]Result[T]] {
	if len(tasks) == 0 {
		return settledChoice(ctx, "async.Settle", []Result[T]{}, nil)
	}
	return choose(ctx, "async.Settle", 0, tasks, allSettled[T]{})
}

// Discarding returns tasks such that f is called exactly once for every value that the
// choice they take part in does not give to anybody.
//
//	conn := async.Any(ctx, async.Discarding(func(c net.Conn) { c.Close() }, dials...)...)
//
// # Details
//
// Such is the value of a loser, one beside an error of what the task has started, and
// that of a winner if a waiter was told of an expiry before, or if nobody has awaited
// the choice when its scope ends. It is for values that must be closed. A value that a
// task returns together with an error of its own is the task's to close.
//
// If Discarding is used twice on one task, the inner hook counts. Outside the
// functions of choosing it changes nothing.
func Discarding[T any](f func(T), tasks ...func(context.Context) (T, error)) []func(context.Context) (T, error) {
	if f == nil {
		panic("async: Discarding with a nil function: pass what is to be called")
	}
	wrapped := make([]func(context.Context) (T, error), len(tasks))
	for i, task := range tasks {
		if task == nil {
			panic("async: Discarding of a nil task: leave it out instead")
		}
		wrapped[i] = func(ctx context.Context) (T, error) {
			if t, _ := tree.Nearest(ctx); t != nil {
				if k, ok := t.Self.(*contender[T]); ok {
					k.discard = f
				}
			}
			return task(ctx)
		}
	}
	return wrapped
}
