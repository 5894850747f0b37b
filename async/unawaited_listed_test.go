package async_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// This file is about what becomes of failures that nobody awaited beside others: they
// are judged, and listed, as what the task has returned is.

// TestAnUnawaitedFailureIsListedOnce, like any error, however many repeat it: whether
// it comes by itself, from a future, from a scope inside, or is why the scope was
// cancelled. The one that came first is told.
func TestAnUnawaitedFailureIsListedOnce(t *testing.T) {
	start := func(name string) func(ctx context.Context) {
		return func(ctx context.Context) { async.Start(ctx, fails, async.Name(name)) }
	}
	inScope := func(ctx context.Context) {
		async.Go(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { start("inner")(ctx); return nil })
		})
	}
	goes := func(ctx context.Context) { async.Go(ctx, fails) }
	inHook := func(ctx context.Context) {
		async.OnExit(ctx, func(ctx context.Context, _ error) error { start("hook's")(ctx); return nil })
	}
	hook := func(ctx context.Context) { async.OnExit(ctx, func(context.Context, error) error { return errPlanted }) }
	for name, tc := range map[string]struct {
		do   []func(ctx context.Context)
		text string
	}{
		"two futures":                  {[]func(context.Context){start("one"), start("one")}, "async: one: nobody awaited it: planted"},
		"a Go task and a future":       {[]func(context.Context){goes, start("one")}, "planted"},
		"a scope inside and a Go task": {[]func(context.Context){inScope, synctestWait, goes}, "async: inner: nobody awaited it: planted"},
		"a scope inside and a future":  {[]func(context.Context){start("one"), inScope}, "async: inner: nobody awaited it: planted"},
		"two hooks":                    {[]func(context.Context){inHook, hook}, "planted"},
		"two hooks, the other way":     {[]func(context.Context){hook, inHook}, "async: hook's: nobody awaited it: planted"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.EqualError(t, async.Scope(ctx, func(ctx context.Context) error {
					for _, f := range tc.do {
						f(ctx)
					}
					return nil
				}), tc.text)
			})
		})
	}
}

func synctestWait(context.Context) { synctest.Wait() }

// TestAnUnawaitedFailureIsTheCauseWithWhichTheScopeWasCancelled: it is not told again
// as the cause.
func TestAnUnawaitedFailureIsTheCauseWithWhichTheScopeWasCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancelCause(ctx)
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Start(ctx, fails, async.Name("report"))
			synctest.Wait()
			cancel(errPlanted)
			return nil
		})
		require.EqualError(t, err, "async: report: nobody awaited it: planted")
	})
}

// TestAnUnawaitedFailureBesideAPanicIsNamed: by the scope that raises the panic; what
// failed further out the root is told.
func TestAnUnawaitedFailureBesideAPanicIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, check := asynctest.Root(ctx)
		p := panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Start(ctx, fails, async.Name("outer"))
				async.Go(ctx, func(ctx context.Context) error {
					return async.Scope(ctx, func(ctx context.Context) error {
						async.Start(ctx, fails, async.Name("inner"))
						synctest.Wait()
						async.Go(ctx, func(context.Context) error { panic("boom") })
						return nil
					})
				})
				return nil
			})
		}).(*async.PanicError)
		var forgotten *async.UnawaitedError
		require.ErrorAs(t, everythingIn(p), &forgotten)
		require.Equal(t, "inner", forgotten.Task)
		require.ErrorAs(t, check(), &forgotten)
		require.Equal(t, "outer", forgotten.Task)
		require.Equal(t, 1, strings.Count(p.Error(), "planted"), p)
	})
}

// TestAnUnawaitedFailureThatHoldsAPanicIsToldBesideIt, in a text with an end.
func TestAnUnawaitedFailureThatHoldsAPanicIsToldBesideIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		p := panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				f := async.Start(ctx, func(context.Context) error { panic("boom") })
				async.Start(ctx, func(ctx context.Context) error {
					_, err := f.Wait(ctx)
					async.Go(ctx, func(context.Context) error { panic(err) })
					return nil
				})
				async.Start(ctx, func(ctx context.Context) error {
					_, err := f.Wait(ctx)
					return &async.ScopeError{Errors: []error{err, errPlanted}}
				}, async.Name("lists"))
				return nil
			})
		}).(*async.PanicError)
		require.Equal(t, 2, strings.Count(p.Error(), "boom"), p)
		require.ErrorIs(t, everythingIn(p), errPlanted)
	})
}

// TestAnUnawaitedFailureIsAnEchoIfTheFailureIs: whether it only repeats why the scope
// around was cancelled is asked of the failure.
func TestAnUnawaitedFailureIsAnEchoIfTheFailureIs(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancelCause(ctx)
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				err := async.Scope(context.WithoutCancel(ctx), func(inner context.Context) error {
					inner, stop := context.WithCancelCause(inner)
					stop(errPlanted)
					async.Start(inner, func(ctx context.Context) error { return context.Cause(ctx) }, async.Name("report"))
					return nil
				})
				require.ErrorContains(t, err, "async: report: nobody awaited it: planted")
				cancel(errPlanted)
				return err
			})
			return nil
		}, async.Name("deploy"))
		require.EqualError(t, err, "async: deploy: planted") // once, as the cause
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Empty(t, list.Errors)
	})
}

// TestListsOfUnawaitedFuturesAreFlattened: what a future failed with that was stopped
// for the cause of the scope around is that scope's, each with the name of the task.
func TestListsOfUnawaitedFuturesAreFlattened(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancelCause(ctx)
		cause := errors.New("shutting down")
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				err := async.Scope(context.WithoutCancel(ctx), func(inner context.Context) error {
					inner, stop := context.WithCancelCause(inner)
					async.Start(inner, func(ctx context.Context) error { <-ctx.Done(); return errPlanted }, async.Name("report"))
					synctest.Wait()
					stop(cause)
					return nil
				})
				cancel(cause)
				return err
			})
			return nil
		}, async.Name("deploy"))
		require.EqualError(t, err, "async: deploy: shutting down\n\treport: nobody awaited it: planted")
		require.ErrorIs(t, err, errPlanted)
	})
}

// TestAnUnawaitedFailureIsFoundByThoseWhoDecide: OnFailure and Restart are told of
// the scope's error, and find the failure in it. An observer is told of the end of the
// task with the failure as it is: nobody can know then whether somebody will await it.
func TestAnUnawaitedFailureIsFoundByThoseWhoDecide(t *testing.T) {
	forgets := func(err error) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			async.Execute(ctx, failsWith[int](err), async.Name("report"))
			return nil
		}
	}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, forgets(errPlanted))
			return nil
		}, async.OnFailure(func(err error) error {
			require.EqualError(t, err, "async: report: nobody awaited it: planted")
			require.ErrorIs(t, err, errPlanted)
			return nil
		})))
		runs := 0
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { runs++; return forgets(async.Final(errPlanted))(ctx) }, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
			return nil
		})
		require.EqualError(t, err, "async: report: nobody awaited it: planted")
		require.Equal(t, 1, runs)
		require.Equal(t, "report: planted", observed(func(o async.ScopeOption) {
			_ = async.Scope(ctx, forgets(errPlanted), o)
		}))
	})
}
