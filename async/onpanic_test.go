package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// TestObserversAreToldOfAPanicThatDoesNotCount, once, and of how the task ended.
func TestObserversAreToldOfAPanicThatDoesNotCount(t *testing.T) {
	for name, answer := range map[string]error{"nil": nil, "another": io.EOF} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var told []string
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, plantPanic, async.Name("bad"))
					return nil
				}, async.OnPanic(func(*async.PanicError) error { return answer }), async.Observe(async.ObserverFunc(func(e async.Event) {
					told = append(told, fmt.Sprint(e.Kind, " ", e.Task, " ", errors.Is(e.Err, errPlanted)))
				})))
				require.Equal(t, answer, err)
				require.Equal(t, []string{"start bad false", "panic bad true", "end bad true"}, told)
			})
		})
	}
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
// ended, and has not cancelled it yet, when the handler of the task panics. What only
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
