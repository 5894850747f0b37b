package async_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// derive returns contexts that are derived from ctx, which tells one of them after another.
func derive(ctx context.Context) (all [300]context.Context) {
	var cancels [len(all)]context.CancelFunc
	for i := range all {
		all[i], cancels[i] = context.WithCancel(ctx)
	}
	async.OnExit(ctx, func(context.Context, error) error {
		for _, cancel := range cancels {
			cancel()
		}
		return nil
	})
	return all
}

// idlers starts tasks that are told to stop after those that were started before, and before those
// that are started after them.
func idlers(ctx context.Context, opts ...async.TaskOption) {
	for range 30 {
		async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, opts...)
	}
}

// earlyIn is how a task is stopped for a reason that it repeats before it has heard of
// that itself: it has awaited early, which was told before.
var earlyIn = map[string]func(ctx context.Context, early func(context.Context) error, wrong func(error)){
	"nested scope": func(ctx context.Context, early func(context.Context) error, wrong func(error)) {
		async.Go(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, early)
				<-ctx.Done()
				return nil
			}, async.OnFailure(func(err error) error { wrong(err); return err }))
		})
	},
	"derived": func(ctx context.Context, early func(context.Context) error, wrong func(error)) {
		all := derive(ctx)
		for i := range 10 {
			told := all[100+i]
			async.Go(all[i], func(context.Context) error { <-told.Done(); return context.Cause(told) })
		}
	},
	"daemon": func(ctx context.Context, early func(context.Context) error, wrong func(error)) {
		async.Go(ctx, func(ctx context.Context) error {
			_ = early(ctx)
			return errors.New("server closed")
		}, async.Daemon())
	},
	"poll": func(ctx context.Context, early func(context.Context) error, wrong func(error)) {
		async.Repeat(ctx, async.Every(1), early)
	},
	"fail": func(ctx context.Context, early func(context.Context) error, wrong func(error)) {
		async.Go(ctx, func(ctx context.Context) error {
			async.Fail(ctx, early(ctx))
			return nil
		})
	},
	"any": func(ctx context.Context, early func(context.Context) error, wrong func(error)) {
		told := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
		async.Any(ctx, func(ctx context.Context) (int, error) { return 0, early(ctx) }, told)
	},
	"fork": func(ctx context.Context, early func(context.Context) error, wrong func(error)) {
		async.ForkJoin(ctx, []int{1, 2}, func(ctx context.Context, i int) (int, error) { return 0, early(ctx) })
	},
	"foreach": func(ctx context.Context, early func(context.Context) error, wrong func(error)) {
		async.Go(ctx, func(ctx context.Context) error {
			return async.ForEach(ctx, slices.Values([]int{1, 2}), func(ctx context.Context, i int) error { return early(ctx) })
		})
	},
	"plain": func(ctx context.Context, early func(context.Context) error, wrong func(error)) {
		async.Go(ctx, early)
	},
	"group": func(ctx context.Context, early func(context.Context) error, wrong func(error)) {
		g := async.NewGroup(ctx)
		_ = g.Go(early)
	},
	"promise": func(ctx context.Context, early func(context.Context) error, wrong func(error)) {
		_, p := async.NewPromise[int](ctx, async.OnAbort(func(context.Context, error) error { return nil }))
		async.Go(ctx, func(ctx context.Context) error { p.Reject(early(ctx)); return nil })
	},
}

// A causeWatch says whose end is told with an error and without the cause.
type causeWatch struct {
	cause error
	say   func(error)
}

func (w causeWatch) Observe(e async.Event) {
	if e.Err != nil && e.Cause != w.cause {
		w.say(fmt.Errorf("an event without the cause: %w", e.Err))
	}
}

// TestNoEchoComesTooEarly for its scope, whatever repeats it.
func TestNoEchoComesTooEarly(t *testing.T) {
	for name, start := range earlyIn {
		t.Run(name, func(t *testing.T) {
			bad, was := errors.New("bad"), 0
			for i := range fewer(400, 100) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					var wrong atomic.Pointer[string]
					say := func(err error) { text := err.Error(); wrong.Store(&text) }
					err := async.Scope(ctx, func(ctx context.Context) error {
						for range 3 {
							told := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
							idlers(ctx)
							start(ctx, func(ctx context.Context) error {
								_, err := told.Await(context.WithoutCancel(ctx), 0)
								return fmt.Errorf("12 rows were not written: %w", err)
							}, say)
						}
						return bad
					}, async.OnFailure(func(err error) error { say(err); return err }),
						async.Observe(causeWatch{bad, say}))
					ok := err == bad
					if list, is := err.(*async.ScopeError); is {
						ok = len(list.Errors) == 1 && list.Errors[0] == bad
					}
					if !ok || wrong.Load() != nil {
						if was++; was <= 1 {
							text := ""
							if p := wrong.Load(); p != nil {
								text = *p
							}
							t.Logf("%d: %v; %s", i, err, text)
						}
					}
				})
			}
			require.Zero(t, was)
		})
	}
}

// TestADaemonThatIsDismissedTooLate: a daemon may hear from another that both are dismissed, and
// end, before it is told.
func TestADaemonThatIsDismissedTooLate(t *testing.T) {
	was := 0
	var wrong error
	for range fewer(300, 100) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				stopped := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
				told := async.Start(ctx, stopped, async.Daemon())
				idlers(ctx, async.Daemon())
				async.Go(ctx, func(ctx context.Context) error {
					_, _ = told.Await(context.WithoutCancel(ctx), 0)
					return errors.New("server closed")
				}, async.Daemon())
				return nil
			})
			if err != nil {
				was, wrong = was+1, err
			}
		})
	}
	require.Zero(t, was, "%v", wrong)
}

// TestAFailureBeforeTheCancellationIsNoEcho: a task has failed when its handler returns, though what it
// has started takes longer than its scope, which is cancelled meanwhile.
func TestAFailureBeforeTheCancellationIsNoEcho(t *testing.T) {
	bad, foreign := errors.New("bad"), fmt.Errorf("page 7: %w", context.Canceled)
	for name, start := range map[string]func(context.Context, func(context.Context) error){
		"Go":    func(ctx context.Context, f func(context.Context) error) { async.Go(ctx, f) },
		"Start": func(ctx context.Context, f func(context.Context) error) { async.Start(ctx, f) },
		"group": func(ctx context.Context, f func(context.Context) error) {
			g := async.NewGroup(ctx)
			require.NoError(t, g.Go(f))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					start(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
						return foreign
					})
					time.Sleep(time.Second)
					return bad
				})
				var list *async.ScopeError
				require.ErrorAs(t, err, &list)
				require.Len(t, list.Errors, 2)
				require.ErrorIs(t, list.Errors[1], foreign)
				require.Empty(t, list.Stopped)
			})
		})
	}
}
