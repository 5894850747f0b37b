package async_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// fails is a handler that fails, with a name that is not a closure's.
func fails(context.Context) error { return errPlanted }

func failsWith[T any](err error) func(context.Context) (T, error) {
	return func(context.Context) (none T, _ error) { return none, err }
}

// The failure of each of these is told by the scope with the name of a task and that
// nobody awaited it. task is "" if it is told as it is.
var unawaited = map[string]struct {
	start func(ctx context.Context)
	task  string
	text  string // of what the scope returns; "" if that is not looked at
}{
	"Start": {
		start: func(ctx context.Context) { async.Start(ctx, fails) },
		task:  "async_test.fails", text: "async: async_test.fails: nobody awaited it: planted",
	},
	"Start with a name": {
		start: func(ctx context.Context) { async.Start(ctx, fails, async.Name("report")) },
		task:  "report", text: "async: report: nobody awaited it: planted",
	},
	"Execute": {
		start: func(ctx context.Context) { async.Execute(ctx, failsWith[int](errPlanted), async.Name("read")) },
		task:  "read", text: "async: read: nobody awaited it: planted",
	},
	"Execute with a discard hook": {
		start: func(ctx context.Context) {
			async.Execute(ctx, failsWith[int](errPlanted), async.Name("read"), async.OnDiscard(func(int) {}))
		},
		task: "read",
	},
	"in a scope with a name": {
		start: func(ctx context.Context) {
			async.Go(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error { async.Start(ctx, fails); return nil }, async.Name("deploy"))
			})
		},
		task: "deploy/async_test.fails", text: "async: deploy/async_test.fails: nobody awaited it: planted",
	},
	"in a task that nobody awaited": {
		start: func(ctx context.Context) {
			async.Start(ctx, func(ctx context.Context) error { async.Start(ctx, fails, async.Name("inner")); return nil }, async.Name("outer"))
		},
		task: "inner", text: "async: inner: nobody awaited it: planted",
	},
	"wrapped by a task that nobody awaited": {
		start: func(ctx context.Context) {
			async.Start(ctx, func(ctx context.Context) error {
				err := async.Scope(ctx, func(ctx context.Context) error { async.Start(ctx, fails, async.Name("inner")); return nil })
				return errors.Join(err, io.EOF)
			}, async.Name("outer"))
		},
		task: "outer", text: "async: outer: nobody awaited it: inner: nobody awaited it: planted\n\tEOF",
	},
	"several failures of a task": {
		start: func(ctx context.Context) {
			async.Start(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { return io.EOF })
				<-ctx.Done()
				return errPlanted
			}, async.Name("outer"))
		},
		task: "outer", text: "async: outer: nobody awaited it: EOF\n\t\tplanted",
	},
	"its own Timeout": {
		start: func(ctx context.Context) {
			async.Start(ctx, joinUntilDone, async.Name("fetch"), async.Timeout(time.Second))
		},
		task: "fetch", text: "async: fetch: nobody awaited it: context deadline exceeded (limit 1s, waited 1s)",
	},
	"Goexit": {
		start: func(ctx context.Context) {
			async.Start(ctx, func(context.Context) error { runtime.Goexit(); return nil }, async.Name("exits"))
		},
		task: "exits",
	},
	"Restart": {
		start: func(ctx context.Context) {
			async.Start(ctx, fails, async.Name("pull"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 2}))
		},
		task: "pull", text: "async: pull: nobody awaited it: given up after 2 failures within 1m0s; last failure: planted",
	},
	"a rejected promise": {
		start: func(ctx context.Context) {
			_, p := async.NewPromise[int](ctx)
			p.Reject(errPlanted)
		},
		task: "promise", text: "async: promise: nobody awaited it: planted",
	},
	"a choice": {
		start: func(ctx context.Context) { async.Race(ctx, failsWith[int](errPlanted)) },
	},
	"Settle": {
		start: func(ctx context.Context) { async.Settle(ctx, failsWith[int](errPlanted), failsWith[int](io.EOF)) },
	},
	"ForkJoin": {
		start: func(ctx context.Context) {
			async.ForkJoin(ctx, []int{0, 1}, func(context.Context, int) (int, error) { return 0, errPlanted })
		},
	},
	"Poll": {
		start: func(ctx context.Context) {
			async.Poll(ctx, async.Every(time.Second), func(context.Context) (int, bool, error) { return 0, false, errPlanted })
		},
	},
	"a Wait that was cut short": {
		start: func(ctx context.Context) {
			f := async.Start(ctx, func(context.Context) error { time.Sleep(time.Hour); return errPlanted }, async.Name("report"))
			brief, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, _ = f.Wait(brief)
		},
		task: "report",
	},
}

// TestAFailureThatNobodyAwaitedNamesItsTask whatever has made the future, and
// errors.Is and As find the failure.
func TestAFailureThatNobodyAwaitedNamesItsTask(t *testing.T) {
	for name, tc := range unawaited {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var seen error
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(_ context.Context, outcome error) error { seen = outcome; return nil })
					tc.start(ctx)
					return nil
				})
				var forgotten *async.UnawaitedError
				require.ErrorAs(t, err, &forgotten)
				require.Same(t, seen, err, "the exit hooks have seen another")
				if tc.task != "" {
					require.Equal(t, tc.task, forgotten.Task)
				}
				if tc.text != "" {
					require.Equal(t, tc.text, err.Error())
				}
				require.Contains(t, err.Error(), forgotten.Task+": nobody awaited it: ")
				switch name {
				case "Goexit":
					require.ErrorIs(t, err, async.ErrGoexit)
				case "its own Timeout":
					var limit *async.TimeoutError
					require.ErrorAs(t, err, &limit)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				default:
					require.ErrorIs(t, err, errPlanted)
				}
			})
		})
	}
}

// TestWhatNeedsNoAwaitIsToldAsItIs: the failure of a Go task, of the body, of a future
// that was awaited, of a group; and a panic, which is raised and says where it was.
func TestWhatNeedsNoAwaitIsToldAsItIs(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"Go":       func(ctx context.Context) error { async.Go(ctx, fails); return nil },
		"the body": fails,
		"an Await": func(ctx context.Context) error { _, err := async.Start(ctx, fails).Await(ctx, 0); return err },
		"an Await after it has failed": func(ctx context.Context) error {
			f := async.Start(ctx, fails)
			synctest.Wait()
			_, err := f.Await(ctx, 0)
			return err
		},
		"a group": func(ctx context.Context) error { return async.NewGroup(ctx, async.Name("uploads")).Go(fails) },
		"a group of a group": func(ctx context.Context) error {
			return async.NewGroup(async.NewGroup(ctx).Context(), async.Name("uploads")).Go(fails)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.Same(t, errPlanted, async.Scope(ctx, body))
			})
		})
	}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		raised := panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Start(ctx, func(context.Context) error { panic(errPlanted) }, async.Name("breaks"))
				return nil
			})
		})
		require.IsType(t, new(async.PanicError), raised)
		require.NotContains(t, raised.(error).Error(), "nobody awaited")
		require.Equal(t, "breaks", raised.(*async.PanicError).Task)
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			f := async.Start(ctx, func(context.Context) error { panic(errPlanted) })
			async.Start(ctx, func(ctx context.Context) error { _, err := f.Wait(ctx); return err })
			return nil
		})
		require.IsType(t, new(async.PanicError), err, "one that was given, and returned")
	})
}

// TestAGroupTellsOfAFutureInItThatNobodyAwaited to those who wait for the group, or to
// its owner.
func TestAGroupTellsOfAFutureInItThatNobodyAwaited(t *testing.T) {
	const text = "async: report: nobody awaited it: planted"
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		async.Start(g.Context(), fails, async.Name("report"))
		require.EqualError(t, g.Wait(ctx), text)
		require.EqualError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Start(async.NewGroup(ctx).Context(), fails, async.Name("report"))
			return nil
		}), text)
	})
}
