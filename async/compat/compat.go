// Package compat has the names and shapes of the async library of Bhatti's
// blog series on structured concurrency, over package async. It is for code
// that was written against that library and is to move on: change the import
// path, then
//
//	go fix -inline ./...
//
// until nothing changes any more. The command replaces what can be replaced without a
// human eye; what is left is in docs/migrating.md, as is what the move repairs.
//
// # What differs from the library
//
// Everything is a task of package async: it belongs to the scope of the ctx it
// was started with, and an expired Await cancels its context. A second Await is
// given the real outcome. A timeout of 0 sets no limit; a negative one has
// already expired.
//
// The abort handler runs once, when the task's context is cancelled while the
// handler runs, by whatever it was cancelled. The context that it is given lasts 5 s.
// Its value is dropped; its error is joined to the task's.
package compat

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Handler is the work of a task. It is given the request that the task was
// started with.
//
// Deprecated: use a func(context.Context) (T, error), which needs no request:
// a closure has what it needs.
//
//go:fix inline
type Handler = func(ctx context.Context, request any) (any, error)

// NoArgHandler is a contender of [ExecuteRacer].
//
// Deprecated: use a func(context.Context) (T, error).
//
//go:fix inline
type NoArgHandler = func(ctx context.Context) (any, error)

// AbortHandler is called when a task is aborted. A value that it returns beside the error
// is dropped.
//
// Deprecated: use a func(ctx context.Context, cause error) error with
// [async.OnAbort].
//
//go:fix inline
type AbortHandler = func(ctx context.Context, request any) (any, error)

// Awaiter is what one waits with. It is not an interface any more: nothing but
// a future is awaited.
//
// Deprecated: use [*async.Future].
//
//go:fix inline
type Awaiter = *async.Future[any]

// Response is one outcome of [AwaitAll].
//
// Deprecated: use [async.Result].
type Response struct {
	Result any
	Err    error
}

// NoAbort is an abort handler that does nothing.
//
// Deprecated: leave out [async.OnAbort].
//
//go:fix inline
func NoAbort(_ context.Context, _ any) (any, error) { return nil, nil }

// Execute starts handler with request on a goroutine of its own. When the task
// is aborted its context is cancelled and abortHandler is called with request.
//
// Deprecated: use [async.Execute], with [async.OnAbort].
//
//go:fix inline
func Execute(ctx context.Context, handler Handler, abortHandler AbortHandler, request any) Awaiter {
	return async.Execute(ctx, func(ctx context.Context) (any, error) {
		return handler(ctx, request)
	}, async.OnAbort(func(ctx context.Context, _ error) error {
		_, err := abortHandler(ctx, request)
		return err
	}))
}

// AwaitAll awaits all with one limit and returns their outcomes in order.
//
// Deprecated: use [async.AwaitAll].
func AwaitAll(ctx context.Context, timeout time.Duration, all ...Awaiter) []Response {
	responses := make([]Response, 0, len(all))
	for _, r := range async.AwaitAll(ctx, timeout, all...) {
		responses = append(responses, Response{Result: r.Value, Err: r.Err})
	}
	return responses
}

// ExecuteRacer runs any number of handlers beside each other. The future
// settles as the first of them does, with its value or its error; the others
// are cancelled. The error of ExecuteRacer itself is always nil: if there are
// no handlers, Await returns [async.ErrNoTasks].
//
// Deprecated: use [async.Race], or [async.Any] for the first success.
//
//go:fix inline
func ExecuteRacer(ctx context.Context, handlers ...NoArgHandler) (Awaiter, error) {
	return async.Race[any](ctx, handlers...), nil
}

// ExecutePolling calls completionHandler with request, the first time at once
// and then pollInterval after each call, until it reports that it is done or
// returns an error, or the task is aborted. An error is an [*async.PollError]
// that matches the handler's.
//
// Deprecated: use [async.Poll], with [async.OnAbort].
//
//go:fix inline
func ExecutePolling(ctx context.Context, completionHandler func(ctx context.Context, payload any) (bool, any, error),
	abortHandler AbortHandler, request any, pollInterval time.Duration) Awaiter {
	return async.Poll(ctx, async.Every(pollInterval), func(ctx context.Context) (any, bool, error) {
		done, value, err := completionHandler(ctx, request)
		return value, done, err
	}, async.OnAbort(func(ctx context.Context, _ error) error {
		_, err := abortHandler(ctx, request)
		return err
	}))
}

// ExecuteWatchdog runs handler, and beside it errorHandler, the first time at
// once and then pollInterval after each call. If that returns an error, the
// future settles with it at that moment, handler's context is cancelled and
// abortHandler is called; the scope of ctx still joins handler. All three are
// given request.
//
// Deprecated: use [async.Watch], with [async.OnAbort]. Its future settles when
// the handler has returned, and its first check comes after an interval.
func ExecuteWatchdog(ctx context.Context, handler Handler, errorHandler func(ctx context.Context, payload any) error,
	abortHandler AbortHandler, request any, pollInterval time.Duration) Awaiter {
	return async.Until(ctx, handlerEndsOrCheckFails, func(ctx context.Context) (any, error) {
		// The context of the task is a child of ctx; that of the wait is not,
		// because the outcome of an aborted handler counts, too.
		value, err := Execute(ctx, handler, abortHandler, request).Wait(context.WithoutCancel(ctx))
		if p, ok := errors.AsType[*async.PanicError](err); ok {
			panic(p) // as an error it would be dropped if the check has failed before
		}
		return value, err
	}, func(ctx context.Context) (any, error) {
		for ctx.Err() == nil {
			if err := errorHandler(ctx, request); err != nil && ctx.Err() == nil {
				return nil, err
			}
			_ = async.Sleep(ctx, max(pollInterval, time.Millisecond))
		}
		return nil, nil
	})
}

func handlerEndsOrCheckFails(r async.Result[any]) bool { return r.Index == 0 || r.Err != nil }
