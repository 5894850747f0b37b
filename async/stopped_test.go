package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestAnotherContextStops tasks and scopes wherever a channel does.
func TestAnotherContextStops(t *testing.T) {
	for name, in := range insideStopOn {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				other, stop := context.WithCancelCause(context.Background())
				ran := false
				_ = async.Scope(ctx, func(ctx context.Context) error {
					in(ctx, async.StopWith(other), func(ctx context.Context) error {
						ran = true
						require.NoError(t, ctx.Err())
						stop(io.EOF)
						require.ErrorIs(t, async.Sleep(ctx, time.Hour), io.EOF)
						require.Equal(t, context.Canceled, ctx.Err())
						require.Equal(t, io.EOF, context.Cause(ctx))
						return nil
					})
					return nil
				})
				time.Sleep(time.Second) // also for a detached task
				synctest.Wait()
				require.True(t, ran)
			})
		})
	}
}

// TestTheCauseOfAnotherContextIsAskedWhenItIsDone, and not when the option is made.
func TestTheCauseOfAnotherContextIsAskedWhenItIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		other, stop := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { stop(io.EOF) })
		err := async.Scope(ctx, echoes, async.StopWith(other))
		var scope *async.ScopeError
		require.ErrorAs(t, err, &scope)
		require.Equal(t, io.EOF, scope.Cause)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestAnotherContextThatIsDoneStopsATaskAsItStarts.
func TestAnotherContextThatIsDoneStopsATaskAsItStarts(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		other, cancel := context.WithTimeout(context.Background(), -1)
		defer cancel()
		hooked := make(chan error, 1)
		err := async.Scope(ctx, func(ctx context.Context) error {
			require.Equal(t, context.Canceled, ctx.Err(), "the deadline is not its own")
			_, has := ctx.Deadline()
			require.False(t, has)
			return context.Cause(ctx)
		}, async.StopWith(other))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		err = async.Scope(ctx, func(ctx context.Context) error {
			hook := async.OnAbort(func(_ context.Context, cause error) error { hooked <- cause; return nil })
			_, err := async.Start(ctx, echoes, async.StopWith(other), hook).Join(ctx)
			return err
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, context.DeadlineExceeded, <-hooked)
	})
}

// TestAnotherContextWithdrawsWhatQueues, a promise and the workers of a fork, too.
func TestAnotherContextWithdrawsWhatQueues(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, stop async.Option) error{
		"task": func(ctx context.Context, stop async.Option) error {
			_, err := async.Start(ctx, failsHook, stop).Join(ctx)
			return err
		},
		"promise": func(ctx context.Context, stop async.Option) error {
			f, _ := async.NewPromise[int](ctx, stop)
			_, err := f.Join(ctx)
			return err
		},
		"fork": func(ctx context.Context, stop async.Option) error {
			_, err := async.ForkJoin(ctx, []int{1, 2}, func(context.Context, int) (int, error) { return 0, errPlanted }, stop).Join(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				other, stop := context.WithCancelCause(context.Background())
				time.AfterFunc(time.Second, func() { stop(io.EOF) })
				var err error
				_ = async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
					begun := time.Now()
					err = start(ctx, async.StopWith(other))
					require.Less(t, time.Since(begun), time.Minute)
					return nil
				}, async.Limit(1))
				require.ErrorIs(t, err, io.EOF)
			})
		})
	}
}

// A registry is a context that says how many functions wait for its end.
type registry struct {
	context.Context
	waiting int
}

// Value hides the context from package context, which would not ask AfterFunc else.
func (*registry) Value(any) any { return nil }

func (r *registry) AfterFunc(f func()) func() bool {
	r.waiting++
	stop := context.AfterFunc(r.Context, f)
	return func() bool { r.waiting--; return stop() }
}

// TestNothingStandsWithAnotherContextOnceAScopeHasEnded, and no goroutine waits for it.
func TestNothingStandsWithAnotherContextOnceAScopeHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		done, cancel := context.WithCancel(context.Background())
		defer cancel()
		other := &registry{Context: done}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			require.Equal(t, 1, other.waiting)
			_, err := async.Start(ctx, idle, async.StopWith(other)).Join(ctx)
			require.Equal(t, 1, other.waiting)
			return err
		}, async.StopWith(other)))
		require.Zero(t, other.waiting)
	})
}

// TestAnotherContextMayBeDoneAsItsScopeEnds: nothing is left, whichever comes first.
func TestAnotherContextMayBeDoneAsItsScopeEnds(t *testing.T) {
	for i := range fewer(3000, 100) {
		other, stop := context.WithCancelCause(context.Background())
		stopped := make(chan struct{})
		go func() { stop(io.EOF); close(stopped) }()
		with := async.StopWith(other)
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			switch i % 3 {
			case 0:
				f, p := async.NewPromise[int](ctx, with)
				async.Go(ctx, func(context.Context) error { p.Resolve(1); return nil })
				_, _ = f.Wait(ctx)
			case 1:
				for range 3 {
					async.Go(ctx, idle, with)
				}
			case 2:
				_, _ = async.Start(ctx, idle, with).Await(ctx, 0)
			}
			return nil
		}, with, async.Limit(1))
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		<-stopped
	}
}

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
