package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestGoexitBesideAPanicThatDoesNotCountIsNotSilent.
func TestGoexitBesideAPanicThatDoesNotCountIsNotSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, plantPanic)
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); runtime.Goexit(); return nil })
				return nil
			})
			return nil
		}, async.OnPanic(carryOn)), async.ErrGoexit)
	})
}

// TestOnPanicIsAskedOnceByEachScope that a panic of a Go task passes, and about
// nothing else.
func TestOnPanicIsAskedOnceByEachScope(t *testing.T) {
	start := func(ctx context.Context) error { _, err := async.Start(ctx, plantPanic).Await(ctx, 0); return err }
	for name, test := range map[string]struct {
		body  func(ctx context.Context) error
		asked int32
		err   bool // or a panic
	}{
		"a Go task": {body: func(ctx context.Context) error { async.Go(ctx, plantPanic); return nil }, asked: 1},
		"one of a Go task": {body: func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, plantPanic); return nil })
			return nil
		}, asked: 1},
		"a scope in a Go task": {body: func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return async.Scope(ctx, plantPanic) })
			return nil
		}, asked: 1},
		"a daemon": {body: func(ctx context.Context) error { async.Go(ctx, plantPanic, async.Daemon()); return async.Sleep(ctx, 1) }, asked: 1},
		"a dismissed daemon": {body: func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); panic(errPlanted) }, async.Daemon())
			return nil
		}, asked: 1},
		"a task of a future": {body: func(ctx context.Context) error {
			async.Start(ctx, func(ctx context.Context) error { async.Go(ctx, plantPanic); return nil })
			return nil
		}, err: true},
		"the body":                {body: plantPanic, err: true},
		"a future":                {body: func(ctx context.Context) error { async.Start(ctx, plantPanic); return nil }, err: true},
		"a future that was given": {body: start, err: true},
		"a future given in Go":    {body: func(ctx context.Context) error { async.Go(ctx, start); return nil }, err: true},
		"an exit hook": {body: func(ctx context.Context) error {
			async.OnExit(ctx, func(ctx context.Context, _ error) error { return plantPanic(ctx) })
			return nil
		}, err: true},
		"items": {body: func(ctx context.Context) error {
			return async.ForEach(ctx, oneItem, func(ctx context.Context, _ int) error { return plantPanic(ctx) })
		}, err: true},
		"Detach": {body: func(ctx context.Context) error {
			async.Detach(ctx, "d", func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, plantPanic); return nil }, async.OnPanic(carryOn))
			})
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var asked atomic.Int32
				err := panicOrError(func() error {
					return async.Scope(ctx, test.body, async.OnPanic(func(*async.PanicError) error { asked.Add(1); return nil }))
				})
				require.Equal(t, test.asked, asked.Load())
				require.Equal(t, test.err, err != nil, "%v", err)
			})
		})
	}
}

func oneItem(yield func(int) bool) { yield(1) }

// TestAPanicIsPardonedWhereverItsTaskRuns and however its scope stands.
func TestAPanicIsPardonedWhereverItsTaskRuns(t *testing.T) {
	for name, opts := range map[string][]async.ScopeOption{
		"Limit":        {async.Limit(1)},
		"On":           {async.On(oneSlot())},
		"On and Limit": {async.On(oneSlot()), async.Limit(1)},
		"DetachAfter":  {async.DetachAfter(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ran := 0
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					for range 3 {
						async.Go(ctx, func(ctx context.Context) error {
							ran++
							_ = async.Scope(ctx, waitOrTick)
							panic(errPlanted)
						})
						_ = async.Sleep(ctx, time.Minute)
					}
					return nil
				}, append(opts, async.OnPanic(carryOn))...))
				require.Equal(t, 3, ran)
			})
		})
	}
}

func waitOrTick(ctx context.Context) error { return async.Sleep(ctx, time.Second) }

func TestAPardonedPanicInACancelledScopeDoesNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); panic(errPlanted) })
			return io.EOF
		}, async.OnPanic(carryOn))
		require.Equal(t, io.EOF, err)
	})
}

// TestAPanicAfterDetachAfterIsAskedAbout, though Scope has returned: the root is
// told only of what counts.
func TestAPanicAfterDetachAfterIsAskedAbout(t *testing.T) {
	for name, answer := range map[string]error{"nil": nil, "another": io.EOF} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				root, check := asynctest.Root(ctx)
				err := async.Scope(root, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Hour); panic(errPlanted) })
					return io.ErrClosedPipe
				}, async.DetachAfter(time.Second), async.OnPanic(func(*async.PanicError) error { return answer }))
				require.ErrorIs(t, err, io.ErrClosedPipe)
				time.Sleep(2 * time.Hour)
				if answer == nil {
					require.NoError(t, check())
				} else {
					require.ErrorIs(t, check(), answer)
				}
			})
		})
	}
}

// TestAServerThatOutlivesPanicsKeepsNothingOfThem.
func TestAServerThatOutlivesPanicsKeepsNothingOfThem(t *testing.T) {
	n := fewer(100_000, 2_000)
	var asked atomic.Int32
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		run := func(n int) {
			for range n {
				done := make(chan struct{})
				async.Go(ctx, func(ctx context.Context) error {
					defer close(done)
					async.Go(ctx, waitHook)
					panic(errPlanted)
				})
				select {
				case <-done:
				case <-ctx.Done(): // it did count
				}
			}
		}
		run(n / 10)
		before := heapInUse()
		run(n)
		require.Less(t, heapInUse(), before+uint64(20*n))
		return nil
	}, async.Limit(2), async.OnPanic(func(*async.PanicError) error { asked.Add(1); return nil })))
	require.Equal(t, n+n/10, int(asked.Load()))
}

// TestOnPanicIsAskedAboutTheLastPanicOfATaskThatIsStartedAgain, when the last run has
// ended.
func TestOnPanicIsAskedAboutTheLastPanicOfATaskThatIsStartedAgain(t *testing.T) {
	for name, answer := range map[string]error{"nil": nil, "another": io.EOF} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				runs, asked, joined, ends := 0, 0, 0, 0
				var last context.Context
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						runs, last = runs+1, ctx
						async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); joined++; return ctx.Err() }, async.Name("child"))
						time.Sleep(time.Second)
						panic(errPlanted)
					}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 3}), async.Name("again"))
					return nil
				}, async.OnPanic(func(*async.PanicError) error {
					asked++
					require.Error(t, last.Err())
					return answer
				}), async.Observe(async.ObserverFunc(func(e async.Event) {
					if e.Kind == async.EventEnd && e.Task == "again" && errors.Is(e.Err, errPlanted) {
						ends++
					}
				})))
				require.Equal(t, answer, err)
				require.Equal(t, []int{3, 1, 3, 3}, []int{runs, asked, joined, ends})
			})
		})
	}
}

// TestALeaderWhosePanicDoesNotCountLeadsNobody, also if that was its last run.
func TestALeaderWhosePanicDoesNotCountLeadsNobody(t *testing.T) {
	for name, restart := range map[string][]async.TaskOption{
		"once":    nil,
		"Restart": {async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 2})},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, plantPanic, append(restart, async.Leader())...)
					require.NoError(t, async.Sleep(ctx, time.Hour))
					return nil
				}, async.OnPanic(carryOn)))
			})
		})
	}
}

func TestAGroupOutlivesPanicsToo(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx, async.OnPanic(carryOn))
		for range 3 {
			require.NoError(t, g.Go(plantPanic))
			time.Sleep(time.Second)
		}
		require.NoError(t, g.Context().Err())
		require.NoError(t, g.Wait(ctx))
	})
}

// TestExitHooksOfATaskWhosePanicDoesNotCountAreToldOfIt: what they would commit if all
// had gone well they do not.
func TestExitHooksOfATaskWhosePanicDoesNotCountAreToldOfIt(t *testing.T) {
	for name, opts := range map[string][]async.TaskOption{
		"once":      nil,
		"a run":     {async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 1})},
		"cancelled": {async.Timeout(-1)},
	} {
		for answer, want := range map[error]error{nil: nil, io.EOF: io.EOF} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					var told error
					require.Equal(t, want, async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(ctx context.Context) error {
							async.OnExit(ctx, func(_ context.Context, outcome error) error { told = outcome; return nil })
							panic(errPlanted)
						}, opts...)
						return nil
					}, async.OnPanic(func(*async.PanicError) error { return answer })))
					var p *async.PanicError
					require.ErrorAs(t, told, &p)
					require.ErrorIs(t, told, errPlanted)
				})
			})
		}
	}
}

// numbers are what differs in a stack.
var numbers = regexp.MustCompile(`goroutine \d+|bubble \d+|0x[0-9a-f]+`)

// OnPanic and OnFailure that return what they were asked about change nothing: the scope says
// the same, and the root is told the same.
func TestToAnswerWhatOneWasAskedChangesNothing(t *testing.T) {
	const same = "planted: a wait that ends, twice"
	stopped := func(text string, d time.Duration) func(context.Context) error { // d: one after the other
		return func(ctx context.Context) error { <-ctx.Done(); time.Sleep(d); return errors.New(text) }
	}
	for name, body := range map[string]func(ctx context.Context) error{
		"a panic that a scope has raised": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, plantPanic, async.Name("planted"))
				return stopped("not saved", 0)(ctx)
			})
		},
		"a list of a scope that was cancelled": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, stopped("first", time.Millisecond), async.Name("1"))
				return stopped(same, time.Second)(ctx)
			}, async.Name("inside"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			told := func(opts ...async.ScopeOption) (err, root error) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					ctx, check := asynctest.Root(ctx)
					err = panicOrError(func() error {
						return async.Scope(ctx, func(ctx context.Context) error {
							async.Go(ctx, body, async.Name("task"))
							async.Go(ctx, func(ctx context.Context) error { return errors.Join(async.Sleep(ctx, time.Second), errPlanted) }, async.Name("fails"))
							return nil
						}, opts...)
					})
					root = check()
				})
				return err, root
			}
			err, root := told()
			asked, askedRoot := told(async.OnPanic(func(p *async.PanicError) error { return p }), async.OnFailure(func(err error) error { return err }))
			text := func(err error) string { return numbers.ReplaceAllString(fmt.Sprint(err), "") }
			require.Equal(t, text(err), text(asked))
			require.Equal(t, text(root), text(askedRoot))
		})
	}
}
