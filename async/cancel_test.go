package async_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// A victim is a task that waits to be told to stop and notes what it is told.
type victim struct {
	future     *async.Future[int]
	err, cause error // as its handler saw them
	hookCause  error // as its abort hook got it
	hooks      atomic.Int32
	hookFirst  atomic.Bool // the hook ran before the context was done
	own        *awaitError
}

// newVictim starts a victim with ctx. Its handler ends with an error of its own.
func newVictim(ctx context.Context, opts ...async.TaskOption) *victim {
	v := &victim{own: &awaitError{99}}
	running := make(chan context.Context, 1)
	hook := func(_ context.Context, cause error) error {
		v.hooks.Add(1)
		v.hookCause = cause
		v.hookFirst.Store((<-running).Err() == nil)
		return nil
	}
	v.future = async.Execute(ctx, func(ctx context.Context) (int, error) {
		running <- ctx
		untilStopped(ctx)
		v.err, v.cause = ctx.Err(), context.Cause(ctx)
		return 0, v.own
	}, append(opts, async.OnAbort(hook), async.Name("victim"))...)
	synctest.Wait() // its handler runs
	return v
}

var (
	errCancelWhy  = errors.New("cancelled on purpose")
	errCancelBoom = errors.New("sibling failed")
)

// TestTheCauseOfACancellationReachesHandlerHookAndCaller, wherever it comes from.
func TestTheCauseOfACancellationReachesHandlerHookAndCaller(t *testing.T) {
	type result struct {
		victim *victim
		caller error // what the one who called was told, nil if nobody was
	}
	for name, test := range map[string]struct {
		run       func(t *testing.T, ctx context.Context) result
		cause     error // matched with errors.Is by handler, hook and caller
		err       error // ctx.Err in the handler
		sameError bool  // the caller is told the very cause
	}{
		"the parent": {func(t *testing.T, ctx context.Context) (r result) {
			ctx, cancel := context.WithCancelCause(ctx)
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx)
				cancel(errCancelWhy)
				return nil
			})
			require.ErrorIs(t, r.caller, context.Canceled)
			return r
		}, errCancelWhy, context.Canceled, false},
		"the parent's deadline": {func(t *testing.T, ctx context.Context) (r result) {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Second, errCancelWhy)
			defer cancel()
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx)
				return nil
			})
			require.ErrorIs(t, r.caller, context.DeadlineExceeded)
			return r
		}, errCancelWhy, context.DeadlineExceeded, false},
		"the parent, three scopes up": {func(t *testing.T, ctx context.Context) (r result) {
			ctx, cancel := context.WithCancelCause(ctx)
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						return async.Scope(ctx, func(ctx context.Context) error {
							r.victim = newVictim(ctx)
							cancel(errCancelWhy)
							return nil
						})
					})
					return nil
				})
			})
			return r
		}, errCancelWhy, context.Canceled, false},
		"a sibling": {func(t *testing.T, ctx context.Context) (r result) {
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx)
				async.Go(ctx, func(context.Context) error { return errCancelBoom })
				return nil
			})
			return r
		}, errCancelBoom, context.Canceled, false},
		"a sibling's panic": {func(t *testing.T, ctx context.Context) (r result) {
			p := panicFrom(func() {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					r.victim = newVictim(ctx)
					async.Go(ctx, func(context.Context) error { panic(errCancelBoom) })
					return nil
				})
			})
			r.caller, _ = p.(error)
			return r
		}, errCancelBoom, context.Canceled, false},
		"the body's error": {func(t *testing.T, ctx context.Context) (r result) {
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx)
				return errCancelBoom
			})
			return r
		}, errCancelBoom, context.Canceled, false},
		"the scope's timeout": {func(t *testing.T, ctx context.Context) (r result) {
			r.caller = async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx)
				return nil
			}, async.Timeout(time.Second))
			var te *async.TimeoutError
			require.ErrorAs(t, r.caller, &te)
			require.Equal(t, time.Second, te.Limit)
			return r
		}, context.DeadlineExceeded, context.DeadlineExceeded, false},
		"the task's timeout": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx, async.Timeout(time.Second))
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, context.DeadlineExceeded, context.DeadlineExceeded, false},
		"an Await's limit": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx)
			_, r.caller = r.victim.future.Await(ctx, time.Second)
			return r
		}, context.DeadlineExceeded, context.Canceled, true},
		"an Await's context": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx)
			brief, cancel := context.WithCancelCause(ctx)
			cancel(errCancelWhy)
			_, r.caller = r.victim.future.Await(brief, 0)
			return r
		}, errCancelWhy, context.Canceled, false},
		"a derived context, cancelled": {func(t *testing.T, ctx context.Context) (r result) {
			derived, cancel := context.WithCancelCause(ctx)
			r.victim = newVictim(derived)
			cancel(errCancelWhy)
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, errCancelWhy, context.Canceled, false},
		"a derived context, timed out": {func(t *testing.T, ctx context.Context) (r result) {
			derived, cancel := context.WithTimeoutCause(ctx, time.Second, errCancelWhy)
			defer cancel()
			r.victim = newVictim(derived)
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, errCancelWhy, context.DeadlineExceeded, false},
		"a context derived twice": {func(t *testing.T, ctx context.Context) (r result) {
			derived, cancel := context.WithCancelCause(ctx)
			r.victim = newVictim(context.WithValue(derived, cycleKey{}, 1))
			cancel(errCancelWhy)
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, errCancelWhy, context.Canceled, false},
		"Cancel": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx)
			require.True(t, r.victim.future.Cancel(errCancelWhy))
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, errCancelWhy, context.Canceled, false},
		"Cancel without a cause": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx)
			require.True(t, r.victim.future.Cancel(nil))
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, context.Canceled, context.Canceled, false},
		"Cancel of the task around it": {func(t *testing.T, ctx context.Context) (r result) {
			around := async.Execute(ctx, func(ctx context.Context) (int, error) {
				r.victim = newVictim(ctx)
				_, err := r.victim.future.Wait(context.WithoutCancel(ctx))
				return 0, err
			})
			time.Sleep(time.Second)
			require.True(t, around.Cancel(errCancelWhy))
			_, r.caller = around.Wait(ctx)
			return r
		}, errCancelWhy, context.Canceled, false},
		"an Await of the task around it": {func(t *testing.T, ctx context.Context) (r result) {
			around := async.Execute(ctx, func(ctx context.Context) (int, error) {
				r.victim = newVictim(ctx)
				return 0, nil
			})
			_, r.caller = around.Await(ctx, time.Second)
			require.Error(t, r.caller)
			_, err := around.Wait(ctx)
			require.ErrorIs(t, err, r.caller)
			return r
		}, context.DeadlineExceeded, context.Canceled, true},
		"a daemon's dismissal": {func(t *testing.T, ctx context.Context) (r result) {
			require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
				r.victim = newVictim(ctx, async.Daemon())
				return nil
			}))
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, async.ErrDismissed, context.Canceled, false},
		"Shutdown": {func(t *testing.T, ctx context.Context) (r result) {
			r.victim = newVictim(ctx)
			over, cancel := context.WithCancel(ctx)
			cancel()
			require.NoError(t, async.Shutdown(over))
			_, r.caller = r.victim.future.Wait(ctx)
			return r
		}, async.ErrShutdown, context.Canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := asynctest.Context(t)
				r := test.run(t, ctx)
				v := r.victim
				require.ErrorIs(t, r.caller, test.cause)
				_, outcome := v.future.Wait(ctx)
				require.ErrorIs(t, v.cause, test.cause)
				require.Equal(t, test.err, v.err)
				require.True(t, v.hookCause == v.cause, "hook: %v, handler: %v", v.hookCause, v.cause)
				require.EqualValues(t, 1, v.hooks.Load())
				require.False(t, v.hookFirst.Load(), "the hook is called after the context was cancelled")
				if test.sameError {
					require.True(t, r.caller == v.cause)
				}
				// Result and cause are both kept.
				var own *awaitError
				require.ErrorAs(t, outcome, &own)
				require.Same(t, v.own, own)
				require.ErrorIs(t, outcome, v.cause)
			})
		})
	}
}

func TestTheFirstCauseWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		v := newVictim(ctx)
		_, err := v.future.Await(ctx, time.Second)
		v.future.Cancel(errCancelBoom)
		cancel(errCancelWhy)
		_, _ = v.future.Wait(context.WithoutCancel(ctx))
		require.True(t, v.cause == err)
		require.True(t, v.hookCause == err)
		require.EqualValues(t, 1, v.hooks.Load())
	})
}
