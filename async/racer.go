package async

import (
	"context"
	"errors"
	"time"
)

// This file is about choosing among several tasks. What the functions have in
// common: they do not block; the future settles at the moment the choice is
// made, not when the last task has ended; those that still run are cancelled
// then, with ErrDecided as the cause, and belong to the scope of ctx, which
// does not end before them; their values go to the hook of Discarding and
// their errors are dropped, but a panic or Goexit fails the scope. Any task
// may be a stubborn one: it costs the choice nothing. The engine is in
// choice.go.

// Errors of choosing. Test for them with [errors.Is].
var (
	// ErrDecided is the cause with which a task is cancelled when the choice
	// it takes part in has been made without it.
	ErrDecided = errors.New("async: decided without it")

	// ErrNoTasks is the outcome of a choice among no tasks.
	ErrNoTasks = errors.New("async: no tasks to choose from")

	// ErrNoWinner is the outcome of Until if no task wins and none fails.
	ErrNoWinner = errors.New("async: no winner")

	// ErrNoQuorum is the outcome of Quorum if too few tasks can succeed.
	ErrNoQuorum = errors.New("async: no quorum")
)

// Race runs tasks beside each other and settles as the first of them does:
// with its value, or with its error.
//
// Among no tasks the outcome of Race is [ErrNoTasks].
func Race[T any](ctx context.Context, tasks ...func(context.Context) (T, error)) *Future[T] {
	if len(tasks) == 0 {
		return chosen(ctx, "async.Race", *new(T), ErrNoTasks)
	}
	return choose(ctx, "async.Race", 0, tasks, func(c *choice[T, T], k *contender[T]) bool {
		c.value, c.v, k.chosen = k.value, k.v, true
		return true
	})
}

// Any runs tasks beside each other and settles with the value of the first that
// succeeds, or, when all have failed, with every error. A panic counts as a
// failure; if another task wins, the scope raises it.
//
// Among no tasks the outcome of Any is [ErrNoTasks].
func Any[T any](ctx context.Context, tasks ...func(context.Context) (T, error)) *Future[T] {
	return anyOf(ctx, "async.Any", 0, tasks)
}

// Hedge is [Any] for tasks that are costly: it starts the first, and the next
// whenever delay has passed since the last start or a task has failed, until
// one succeeds. When the choice is cancelled no more are started. A delay of
// 0 or less starts all at once.
//
// The idea is that of the backup requests in Dean and Barroso, The Tail at
// Scale (2013).
func Hedge[T any](ctx context.Context, delay time.Duration, tasks ...func(context.Context) (T, error)) *Future[T] {
	return anyOf(ctx, "async.Hedge", delay, tasks)
}

func anyOf[T any](ctx context.Context, name string, delay time.Duration, tasks []func(context.Context) (T, error)) *Future[T] {
	if len(tasks) == 0 {
		return chosen(ctx, name, *new(T), ErrNoTasks)
	}
	return choose(ctx, name, delay, tasks, func(c *choice[T, T], k *contender[T]) bool {
		switch {
		case k.v.err == nil:
			c.value, k.chosen = k.value, true
			return true
		case c.settled == c.total():
			c.v = c.failures(nil)
			return true
		default:
			return false
		}
	})
}

// Until runs tasks beside each other and settles with the outcome, a value or
// an error, of the first that wins says true of. If none does, the outcome is
// every error, or [ErrNoWinner] if there is none.
//
// It is for roles. A leader decides by ending, a helper only by failing:
//
//	wins := func(r async.Result[int]) bool { return r.Index == leader || r.Err != nil }
//
// wins is never called by two goroutines at once, nor after the choice is
// made. If it panics, that is the outcome. Among no tasks the outcome is
// [ErrNoTasks].
func Until[T any](ctx context.Context, wins func(Result[T]) bool, tasks ...func(context.Context) (T, error)) *Future[T] {
	if wins == nil {
		panic("async: Until with a nil predicate")
	}
	if len(tasks) == 0 {
		return chosen(ctx, "async.Until", *new(T), ErrNoTasks)
	}
	return choose(ctx, "async.Until", 0, tasks, func(c *choice[T, T], k *contender[T]) bool {
		won := false
		if bad := guard("predicate of Until", func() { won = wins(k.result()) }); bad != nil {
			c.v = asVerdict(bad)
			return true
		}
		switch {
		case won:
			c.value, c.v, k.chosen = k.value, k.v, true
		case c.settled < len(c.all):
			return false
		case c.good == len(c.all):
			c.v.err = ErrNoWinner
		default:
			c.v = c.failures(nil)
		}
		return true
	})
}

// Quorum runs tasks beside each other and settles when k of them have
// succeeded, with their values in the order of the tasks, or as soon as that
// has become impossible, with an error that matches [ErrNoQuorum] and every
// error so far. k < 1 panics; with fewer than k tasks it fails at once and
// starts none. Among no tasks the outcome is [ErrNoTasks].
func Quorum[T any](ctx context.Context, k int, tasks ...func(context.Context) (T, error)) *Future[[]T] {
	switch {
	case k < 1:
		panic("async: Quorum of k < 1: k is how many tasks must succeed")
	case len(tasks) == 0:
		return chosen(ctx, "async.Quorum", []T(nil), ErrNoTasks)
	case k > len(tasks):
		return chosen(ctx, "async.Quorum", []T(nil), ErrNoQuorum)
	}
	return choose(ctx, "async.Quorum", 0, tasks, func(c *choice[T, []T], _ *contender[T]) bool {
		switch {
		case c.good == k:
			c.value = c.values()
		case len(c.all)-(c.settled-c.good) < k:
			c.v = c.failures(ErrNoQuorum)
		default:
			return false
		}
		return true
	})
}

// All runs tasks beside each other and settles with their values in the order
// of the tasks, or, as soon as one fails, with its error. All of no tasks is
// empty.
func All[T any](ctx context.Context, tasks ...func(context.Context) (T, error)) *Future[[]T] {
	if len(tasks) == 0 {
		return chosen(ctx, "async.All", []T{}, nil)
	}
	return choose(ctx, "async.All", 0, tasks, func(c *choice[T, []T], k *contender[T]) bool {
		switch {
		case k.v.err != nil:
			c.v, k.chosen = k.v, true
		case c.good == len(c.all):
			c.value = c.values()
		default:
			return false
		}
		return true
	})
}

// Settle runs tasks beside each other and settles when all have ended, with
// every outcome in the order of the tasks. The error of the future is nil, the
// errors are in the results; if nobody is given these, they fail the scope.
// Settle of no tasks is empty.
func Settle[T any](ctx context.Context, tasks ...func(context.Context) (T, error)) *Future[[]Result[T]] {
	if len(tasks) == 0 {
		return chosen(ctx, "async.Settle", []Result[T]{}, nil)
	}
	return choose(ctx, "async.Settle", 0, tasks, func(c *choice[T, []Result[T]], _ *contender[T]) bool {
		if c.settled < len(c.all) {
			return false
		}
		c.value = make([]Result[T], len(c.all))
		for i := range c.all {
			c.value[i] = c.all[i].result()
			c.all[i].chosen = true
		}
		if c.good < len(c.all) {
			c.v = c.failures(nil)
			c.v.partial = true
		}
		return true
	})
}

// Discarding returns tasks such that f is called exactly once for every value
// that the choice they take part in does not give to anybody: that of a loser,
// or of a winner after a waiter was told of an expiry. It is for values that
// must be closed. Outside the functions of choosing it changes nothing.
//
//	conn := async.Any(ctx, async.Discarding(func(c net.Conn) { c.Close() }, dials...)...)
func Discarding[T any](f func(T), tasks ...func(context.Context) (T, error)) []func(context.Context) (T, error) {
	if f == nil {
		panic("async: Discarding with a nil function")
	}
	wrapped := make([]func(context.Context) (T, error), len(tasks))
	for i, task := range tasks {
		if task == nil {
			panic("async: Discarding of a nil task")
		}
		wrapped[i] = func(ctx context.Context) (T, error) {
			if t, _ := nearest(ctx); t != nil {
				if k, ok := t.self.(*contender[T]); ok {
					k.discard = f
				}
			}
			return task(ctx)
		}
	}
	return wrapped
}

// values returns the values of those that succeeded, in order, and marks them.
func (c *choice[T, R]) values() []T {
	values := make([]T, 0, c.good)
	for i := range c.all {
		if k := &c.all[i]; k.judged && k.v.err == nil {
			k.chosen = true
			values = append(values, k.value)
		}
	}
	return values
}

// result returns the outcome of k.
func (k *contender[T]) result() Result[T] {
	return Result[T]{Index: k.index, Value: k.value, Err: k.v.err}
}
