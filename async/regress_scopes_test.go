package async_test

import (
	"context"
	"errors"
	"fmt"
	"go/scanner"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestExitHooksRunOneAtATimeThoughDetachAfterHasPassed, and each sees the
// outcome.
func TestExitHooksRunOneAtATimeThoughDetachAfterHasPassed(t *testing.T) {
	for name, left := range map[string]time.Duration{"none": 0, "a straggler": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, _ = asynctest.Root(ctx)
				var c runCount
				require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
					for range 3 {
						async.OnExit(ctx, func(_ context.Context, outcome error) error {
							require.ErrorIs(t, outcome, errPlanted)
							c.enter()
							defer c.out()
							time.Sleep(2 * time.Second)
							return nil
						})
					}
					async.Go(ctx, func(context.Context) error { time.Sleep(left); return nil })
					return errPlanted
				}, async.DetachAfter(time.Second)), errPlanted)
				require.NoError(t, async.Shutdown(ctx))
				require.EqualValues(t, 1, c.most.Load())
				require.EqualValues(t, 3, c.entered.Load())
			})
		})
	}
}

func TestAFailureAndAStragglerMakeAScopeError(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(4 * time.Second); return nil })
			return errPlanted
		}, async.DetachAfter(time.Second))
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Equal(t, errPlanted, list.Errors[0])
		require.ErrorAs(t, err, new(*async.StragglerError))
	})
}

// TestWhoIsLeftIsNamedWherever it stands: the body itself, also one that starts
// a task later, and a task of an inner scope.
func TestWhoIsLeftIsNamedWherever(t *testing.T) {
	stays := func(context.Context) error { time.Sleep(time.Hour); return nil }
	starts := func(ctx context.Context) error { async.Go(ctx, stays, async.Name("culprit")); return nil }
	inner := func(ctx context.Context) error { return async.Scope(ctx, starts) }
	var told atomic.Pointer[async.StragglerError]
	stall := async.OnStall(time.Second, func(e *async.StragglerError) {
		if told.Swap(e) != nil {
			panic("called twice")
		}
	})
	detach := async.DetachAfter(time.Second)
	for name, test := range map[string]struct {
		body func(ctx context.Context) error
		opts []async.ScopeOption
	}{
		"body":                    {stays, []async.ScopeOption{stall, async.Name("culprit")}},
		"started late":            {func(ctx context.Context) error { time.Sleep(2 * time.Second); return starts(ctx) }, []async.ScopeOption{stall, async.Name("culprit")}},
		"in an inner scope":       {inner, []async.ScopeOption{stall}},
		"of a sibling":            {func(ctx context.Context) error { async.Go(ctx, inner); return nil }, []async.ScopeOption{stall}},
		"of a sibling, let go of": {func(ctx context.Context) error { async.Go(ctx, inner); return nil }, []async.ScopeOption{detach}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				told.Store(nil)
				cancelled, cancel := context.WithCancel(ctx)
				cancel()
				err := async.Scope(cancelled, test.body, test.opts...)
				left := told.Load()
				if left == nil {
					require.ErrorAs(t, err, &left)
				}
				var names []string
				for _, l := range left.Left {
					names = append(names, l.Task)
				}
				require.Contains(t, strings.Join(names, " "), "culprit")
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// TestAnErrorThatCannotBeComparedIsReportedOnce as the failure itself.
func TestAnErrorThatCannotBeComparedIsReportedOnce(t *testing.T) {
	list := scanner.ErrorList{&scanner.Error{Msg: "bad"}}
	for name, body := range map[string]func(ctx context.Context) error{
		"of a task": func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return list })
			return nil
		},
		"of a body": func(context.Context) error { return list },
		"and echoed": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
			return list
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.IsType(t, list, async.Scope(asynctest.Context(t), body))
		})
	}
}

func TestTheCauseIsToldOnceThoughSiblingsFailAfterIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			for range 3 {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return io.EOF })
			}
			return errPlanted
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Equal(t, []error{errPlanted, io.EOF, io.EOF, io.EOF}, list.Errors)
	})
}

func TestTheFirstErrorOfAScopeIsTheOneThatDecided(t *testing.T) {
	ctx := asynctest.Context(t)
	for range 20_000 / raceFactor {
		var scope context.Context
		var cause error
		var gate sync.WaitGroup
		gate.Add(1)
		err := async.Scope(ctx, func(ctx context.Context) error {
			scope = ctx
			for range 2 {
				mine := errors.New("one of two")
				async.Go(ctx, func(context.Context) error { gate.Wait(); return mine })
			}
			async.OnExit(ctx, func(context.Context, error) error { cause = context.Cause(scope); return nil })
			gate.Done()
			return nil
		})
		if list := (*async.ScopeError)(nil); errors.As(err, &list) {
			require.Same(t, cause, list.Errors[0])
		}
	}
}

func TestAHooksErrorInACancelledScopeMatchesItsErrAndCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	cancel(errPlanted)
	err := async.Scope(ctx, func(ctx context.Context) error {
		async.OnExit(ctx, func(context.Context, error) error { return io.EOF })
		return nil
	})
	for _, want := range []error{io.EOF, context.Canceled, errPlanted} {
		require.ErrorIs(t, err, want)
	}
}

// TestAnEchoCountsThoughItsWaiterWasTold of the cancellation before.
func TestAnEchoCountsThoughItsWaiterWasTold(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			f := async.Execute(ctx, func(ctx context.Context) (int, error) { <-ctx.Done(); time.Sleep(time.Second); return 0, ctx.Err() })
			_, _ = f.Await(ctx, 0)
			return nil
		}), context.Canceled)
	})
}

// upstream is an error of its own that says it is a cancellation.
type upstream int

func (e upstream) Error() string        { return fmt.Sprintf("upstream said %d", int(e)) }
func (e upstream) Is(target error) bool { return target == context.Canceled }

// TestWhatOnlyLooksLikeAnEchoIsKept beside the failure that cancelled the scope
// at 2 s.
func TestWhatOnlyLooksLikeAnEchoIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		says func(ctx context.Context) error
		opts []async.TaskOption
		want error
	}{
		"matches Canceled":                      {func(ctx context.Context) error { time.Sleep(2 * time.Second); <-ctx.Done(); return upstream(499) }, nil, upstream(499)},
		"a derived context that expired before": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil, context.DeadlineExceeded},
		"a Timeout that passed before":          {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, []async.TaskOption{async.Timeout(time.Second)}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					start := ctx
					if test.opts == nil && test.want == context.DeadlineExceeded {
						derived, cancel := context.WithTimeout(ctx, time.Second)
						defer cancel()
						start = derived
					}
					async.Go(start, func(ctx context.Context) error {
						err := test.says(ctx)
						time.Sleep(2 * time.Second)
						return fmt.Errorf("upload: %w", err)
					}, test.opts...)
					time.Sleep(2 * time.Second)
					return errPlanted
				})
				require.ErrorIs(t, err, errPlanted)
				require.ErrorIs(t, err, test.want)
			})
		})
	}
}

// countedContext counts how often its Err is asked, which asks its parent's, as
// its Done, which is its own, does not.
type countedContext struct {
	context.Context
	done  chan struct{}
	asked *atomic.Int64
}

func (c countedContext) Done() <-chan struct{} { return c.done }
func (c countedContext) Err() error            { c.asked.Add(1); return c.Context.Err() }

func TestContextsOfOnesOwnAreNotAskedMoreOftenThanTheDepth(t *testing.T) {
	const depth = 16
	var asked atomic.Int64
	var down func(ctx context.Context, n int) error
	down = func(ctx context.Context, n int) error {
		if n == 0 {
			asked.Store(0)
			return ctx.Err()
		}
		return async.Scope(countedContext{ctx, make(chan struct{}), &asked}, func(ctx context.Context) error { return down(ctx, n-1) })
	}
	require.NoError(t, down(asynctest.Context(t), depth))
	require.LessOrEqual(t, asked.Load(), int64(2*depth))
}

func TestErrIsThatOfTheContextATaskWasStartedWith(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			for _, use := range []func(ctx context.Context){
				func(ctx context.Context) { _ = ctx.Done() },
				func(ctx context.Context) { async.OnExit(ctx, contextHook) },
			} {
				derived, cancel := context.WithTimeout(ctx, time.Hour)
				async.Go(derived, func(ctx context.Context) error {
					defer cancel()
					use(ctx)
					time.Sleep(2 * time.Second)
					require.Equal(t, derived.Err(), ctx.Err())
					return nil
				})
			}
			return nil
		}, async.Timeout(time.Second))
	})
}
