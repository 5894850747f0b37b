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
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// carryOn is what OnPanic is given where a scope outlives its tasks' panics.
func carryOn(*async.PanicError) error { return nil }

// plantPanic is a task that does nothing else.
func plantPanic(context.Context) error { plantedPanic(); return nil }

// TestOnPanicDecidesWhatAPanicIs: nothing, as without it, or a failure.
func TestOnPanicDecidesWhatAPanicIs(t *testing.T) {
	other := errors.New("other")
	for name, test := range map[string]struct {
		answer  func(p *async.PanicError) error
		want    error
		panics  bool
		goes    bool // the others go on
		matches error
	}{
		"nil":       {answer: carryOn, goes: true},
		"the same":  {answer: func(p *async.PanicError) error { return p }, panics: true, matches: errPlanted},
		"another":   {answer: func(*async.PanicError) error { return other }, want: other, matches: other},
		"its value": {answer: func(p *async.PanicError) error { return p.Value.(error) }, want: errPlanted, matches: errPlanted},
		"a copy": {answer: func(p *async.PanicError) error {
			return &async.PanicError{Value: p.Value, Stack: p.Stack, Task: p.Task}
		}, matches: errPlanted},
		"one that wraps it": {answer: func(p *async.PanicError) error { return fmt.Errorf("served: %w", p) }, matches: errPlanted},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var asked []*async.PanicError
				var sibling error
				var err error
				value := panicFrom(func() {
					err = async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(ctx context.Context) error {
							sibling = async.Sleep(ctx, time.Minute)
							return nil
						})
						async.Go(ctx, plantPanic, async.Name("bad"))
						return nil
					}, async.OnPanic(func(p *async.PanicError) error {
						asked = append(asked, p)
						return test.answer(p)
					}))
				})
				require.Len(t, asked, 1)
				require.Equal(t, "bad", asked[0].Task)
				if test.goes {
					require.NoError(t, sibling)
				} else {
					require.ErrorIs(t, sibling, context.Canceled)
					require.ErrorIs(t, sibling, test.matches)
				}
				if test.panics {
					require.ErrorIs(t, value.(error), asked[0])
					return
				}
				require.Nil(t, value)
				require.ErrorIs(t, err, test.matches)
				if test.want != nil {
					require.Equal(t, test.want, err, "the failure itself")
				}
			})
		})
	}
}

// TestOnPanicIsAskedWhenTheTaskHasEnded, and before anything around it is cancelled;
// what the task has started is cancelled at once.
func TestOnPanicIsAskedWhenTheTaskHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		asked, childEnded := false, false
		_ = panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(own context.Context) error {
					async.Go(own, func(ctx context.Context) error {
						<-ctx.Done()
						time.Sleep(time.Second)
						childEnded = true
						return nil
					})
					panic(errPlanted)
				})
				return async.Scope(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					require.True(t, asked, "asked before")
					return nil
				})
			}, async.OnPanic(func(p *async.PanicError) error {
				require.True(t, childEnded)
				time.Sleep(time.Second) // all that could be cancelled has the time to be
				asked = true
				return p
			}))
		})
		require.True(t, asked)
	})
}

// TestOnPanicThatGoesWrongIsAnErrorBesideThePanic which is raised.
func TestOnPanicThatGoesWrongIsAnErrorBesideThePanic(t *testing.T) {
	for name, test := range map[string]struct {
		bang func(*async.PanicError)
		want error
	}{
		"panics":        {func(*async.PanicError) { panic(io.ErrShortWrite) }, io.ErrShortWrite},
		"exits":         {func(*async.PanicError) { runtime.Goexit() }, async.ErrGoexit},
		"raises itself": {func(p *async.PanicError) { panic(p) }, errPlanted},
	} {
		for where, task := range map[string]func(ctx context.Context) error{
			"of the task": plantPanic,
			"of its task": func(ctx context.Context) error { async.Go(ctx, plantPanic); return nil },
		} {
			t.Run(name+", "+where, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					var asked *async.PanicError
					value := panicFrom(func() {
						_ = async.Scope(ctx, func(ctx context.Context) error {
							async.Go(ctx, task)
							return nil
						}, async.OnPanic(func(p *async.PanicError) error { asked = p; test.bang(p); return nil }))
					})
					require.NotNil(t, asked)
					require.ErrorIs(t, value.(error), asked)
					require.ErrorIs(t, everythingIn(value.(error)), errPlanted)
					require.ErrorIs(t, everythingIn(value.(error)), test.want)
				})
			})
		}
	}
}

// TestWhatAPardonedTaskHasStarted is cancelled and joined; what fails in there
// counts as if there had been no panic.
func TestWhatAPardonedTaskHasStarted(t *testing.T) {
	cleanup := errors.New("cleanup failed")
	for name, test := range map[string]struct {
		child  func(ctx context.Context) error
		failed error // what OnFailure is asked about
		panic  error // what else OnPanic is asked about
		exits  bool
	}{
		"echoes":           {child: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		"echoes the cause": {child: func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("x: %w", context.Cause(ctx)) }},
		"succeeds":         {child: waitHook},
		"fails":            {child: func(ctx context.Context) error { <-ctx.Done(); return cleanup }, failed: cleanup},
		"fails in a scope": {child: func(ctx context.Context) error { return async.Scope(ctx, failsWhenStopped(cleanup)) }, failed: cleanup},
		"panics":           {child: func(ctx context.Context) error { <-ctx.Done(); panic(cleanup) }, panic: cleanup},
		"exits":            {child: func(ctx context.Context) error { <-ctx.Done(); runtime.Goexit(); return nil }, exits: true},
		"echoes in a scope": {child: func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		}},
	} {
		for _, answer := range []error{nil, io.EOF} {
			t.Run(fmt.Sprint(name, ", answered ", answer), func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					joined, failures, panicked := false, []error(nil), []error(nil)
					err := async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(ctx context.Context) error {
							async.Go(ctx, func(ctx context.Context) error {
								defer func() { joined = true }()
								return test.child(ctx)
							})
							time.Sleep(time.Second)
							panic(errPlanted)
						})
						return nil
					}, async.OnPanic(func(p *async.PanicError) error {
						if panicked = append(panicked, p); errors.Is(p, errPlanted) {
							return answer
						}
						return nil
					}), async.OnFailure(func(err error) error { failures = append(failures, err); return nil }))
					require.True(t, joined)
					if answer != nil { // it is told with all else
						require.Len(t, panicked, 1)
						require.Empty(t, failures)
						require.ErrorIs(t, err, answer)
						for _, want := range []error{test.failed, test.panic} {
							require.True(t, want == nil || errors.Is(everythingIn(err), want), err)
						}
						require.Equal(t, test.exits, errors.Is(err, async.ErrGoexit))
						return
					}
					if test.failed != nil {
						require.Len(t, failures, 1)
						require.ErrorIs(t, failures[0], test.failed)
					} else {
						require.Empty(t, failures)
					}
					if test.panic != nil {
						require.Len(t, panicked, 2)
						require.ErrorIs(t, panicked[1], test.panic)
					} else {
						require.Len(t, panicked, 1)
					}
					if test.exits {
						require.ErrorIs(t, err, async.ErrGoexit)
					} else {
						require.NoError(t, err)
					}
				})
			})
		}
	}
}

// failsWhenStopped returns a body that fails with err when it is told to stop.
func failsWhenStopped(err error) func(context.Context) error {
	return func(ctx context.Context) error { <-ctx.Done(); return err }
}

// An askedCtx calls asked whenever Err of it is.
type askedCtx struct {
	context.Context
	asked func()
}

func (c askedCtx) Err() error {
	c.asked()
	return c.Context.Err()
}

// TestAPanicThatDoesNotCountCancelsThoughALeaderIsAboutTo: the leader of the task has
// ended, and has not cancelled it yet, when the handler of the task panics. An error that only
// repeats that panic is no failure all the same.
func TestAPanicThatDoesNotCountCancelsThoughALeaderIsAboutTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		var looks atomic.Int32
		leads, pardoned := make(chan struct{}), make(chan struct{})
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			ctx = askedCtx{context.WithoutCancel(ctx), func() {
				if ended.Load() && looks.Add(1) == 2 { // the leader counts, and is about to cancel
					close(leads)
					<-pardoned
				}
			}}
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
				async.Go(ctx, func(context.Context) error {
					synctest.Wait() // until nobody else looks
					ended.Store(true)
					return nil
				}, async.Leader())
				<-leads
				go func() { synctest.Wait(); close(pardoned) }()
				panic("no harm")
			})
			return nil
		}, async.OnPanic(carryOn)))
		require.GreaterOrEqual(t, looks.Load(), int32(2))
	})
}

// embedsRestart is a user's error that has the methods of ours.
type embedsRestart struct {
	*async.RestartError
	text string
}

func (e embedsRestart) Error() string { return e.text }

func TestAnErrorThatEmbedsARestartErrorIsToldBesideAPanic(t *testing.T) {
	rows := embedsRestart{&async.RestartError{Failures: 3}, "7 rows were lost"}
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return rows })
			panic("boom")
		})
		return nil
	}, async.OnPanic(func(*async.PanicError) error { return nil }))
	assert.ErrorIs(t, err, rows)
}

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
