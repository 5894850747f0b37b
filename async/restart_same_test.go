package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/stretchr/testify/require"
)

// TestATaskThatIsToldToStopHasTheOutcomeThatItWouldHaveWithoutRestart: whatever
// its handler does then, whoever is told, and whichever way it is told to stop.
func TestATaskThatIsToldToStopHasTheOutcomeThatItWouldHaveWithoutRestart(t *testing.T) {
	said := errors.New("said as it stopped")
	handlers := map[string]func(ctx context.Context) error{
		"returns nil":      func(ctx context.Context) error { untilStopped(ctx); return nil },
		"returns why":      func(ctx context.Context) error { untilStopped(ctx); return ctx.Err() },
		"returns cause":    func(ctx context.Context) error { untilStopped(ctx); return context.Cause(ctx) },
		"wraps why":        func(ctx context.Context) error { untilStopped(ctx); return fmt.Errorf("page 7: %w", ctx.Err()) },
		"says more":        func(ctx context.Context) error { untilStopped(ctx); return said },
		"is final":         func(ctx context.Context) error { untilStopped(ctx); return async.Final(said) },
		"panics":           func(ctx context.Context) error { untilStopped(ctx); panic(said) },
		"Goexit":           func(ctx context.Context) error { untilStopped(ctx); runtime.Goexit(); return nil },
		"a task says more": func(ctx context.Context) error { return inTask(ctx, said) },
		"a task and itself": func(ctx context.Context) error {
			_ = inTask(ctx, errPlanted)
			time.Sleep(time.Millisecond) // so that it is the second to fail
			return said
		},
		"a scope says more": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { return inTask(ctx, said) })
		},
		"a hook says more": func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return said })
			untilStopped(ctx)
			return ctx.Err()
		},
		"a future nobody awaits": func(ctx context.Context) error {
			async.Start(ctx, func(context.Context) error { return said })
			untilStopped(ctx)
			return nil
		},
	}
	for name, handler := range handlers {
		for how, program := range stoppedPrograms {
			for kind, opts := range map[string][]async.TaskOption{
				"plain": nil, "daemon": {async.Daemon()}, "hook": {async.OnAbort(func(context.Context, error) error { return errHookBoom })},
			} {
				t.Run(name+"/"+how+"/"+kind, func(t *testing.T) {
					outcome := func(opts ...async.TaskOption) (text string) {
						inBubble(t, func(t *testing.T, ctx context.Context) {
							var err error
							if value := panicFrom(func() { err = program(ctx, handler, append(opts, async.Name("w"))) }); value != nil {
								err, _ = value.(error)
								text = "panics with "
							}
							if err != nil {
								text += err.Error()
							}
							text, _, _ = strings.Cut(text, "\n\ngoroutine") // the stacks differ
						})
						return text
					}
					again := outcome(append(opts, everySecond)...)
					daemon := (kind == "daemon" || how == "Go dismissed") && slices.Contains(stoppedByOwner, how)
					switch {
					case daemon && kind == "hook" && slices.Contains(saidBelow, name): // the handler has returned a list
						require.Contains(t, again, errHookBoom.Error())
					case daemon && kind != "hook" && slices.Contains(saidByTasks, name): // the handler has returned it
						require.NotContains(t, again, said.Error())
					default:
						require.Equal(t, outcome(opts...), again)
					}
				})
			}
		}
	}
}

// saidByTasks are the handlers whose tasks say more. For a task with Restart that is what a
// run returns, so of a daemon that was told to stop it does not count.
var (
	saidByTasks    = []string{"a task says more", "a task and itself", "a future nobody awaits"}
	saidBelow      = append(slices.Clone(saidByTasks), "a scope says more")
	stoppedByOwner = []string{"Go in a scope that is done", "Go dismissed", "Go beside a failure", "Start, unclaimed"}
)

func inTask(ctx context.Context, err error) error {
	async.Go(ctx, func(ctx context.Context) error { untilStopped(ctx); return err })
	untilStopped(ctx)
	return ctx.Err()
}

// stoppedPrograms start f, tell it to stop, and return what comes of it.
var stoppedPrograms = map[string]func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error{
	"Go in a scope that is done": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(errPlanted) })
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, f, opts...)
			<-ctx.Done()
			return nil
		})
	},
	"Go with its own timeout": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, f, append(opts, async.Timeout(time.Second))...)
			return async.Sleep(ctx, time.Minute)
		})
	},
	"Go dismissed": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, f, append(opts, async.Daemon())...)
			return async.Sleep(ctx, time.Second)
		})
	},
	"Go beside a failure": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, f, opts...)
			return async.Sleep(ctx, time.Second)
		}, async.Timeout(time.Millisecond))
	},
	"Go with a ctx of its own": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			own, cancel := context.WithTimeoutCause(ctx, time.Second, errPlanted)
			defer cancel()
			async.Go(own, f, opts...)
			return async.Sleep(ctx, time.Minute)
		})
	},
	"Start, cancelled": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		w := async.Start(ctx, f, opts...)
		time.Sleep(time.Second)
		w.Cancel(errPlanted)
		_, err := w.Join(ctx)
		return err
	},
	"Start, expired": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		w := async.Start(ctx, f, opts...)
		_, err := w.Await(ctx, time.Second)
		_, later := w.Join(ctx)
		return errors.Join(err, later)
	},
	"Start, unclaimed": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(errPlanted) })
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Start(ctx, f, opts...)
			<-ctx.Done()
			return nil
		})
	},
	"Start, skipped in the queue": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		ctx, cancel := context.WithCancelCause(ctx)
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
			synctest.Wait()
			w := async.Start(ctx, f, opts...)
			cancel(errPlanted)
			_, err := w.Join(ctx)
			if err == nil {
				return errors.New("it was called")
			}
			return nil
		}, async.Limit(1))
	},
	"Start under a limit": func(ctx context.Context, f func(context.Context) error, opts []async.TaskOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			w := async.Start(ctx, f, opts...)
			_ = async.Sleep(ctx, time.Second)
			w.Cancel(errPlanted)
			_, err := w.Join(ctx)
			return err
		}, async.Limit(1))
	},
}

// TestAMissedBeatFailsARun: whatever the handler returns then. Each run has all of
// its time to beat.
func TestAMissedBeatFailsARun(t *testing.T) {
	for name, returned := range map[string]func(ctx context.Context) error{
		"why":   func(ctx context.Context) error { return ctx.Err() },
		"nil":   func(context.Context) error { return nil },
		"other": func(context.Context) error { return errPlanted },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				hooks, runs := 0, 0
				start := func() *async.Future[struct{}] {
					return async.Start(ctx, func(ctx context.Context) error {
						runs++
						for range 3 {
							async.Beat(ctx)
							time.Sleep(time.Second)
						}
						<-ctx.Done()
						return returned(ctx)
					}, everySecond, async.Heartbeat(2*time.Second), async.OnAbort(func(_ context.Context, cause error) error {
						require.ErrorIs(t, cause, async.ErrNoBeat)
						hooks++
						return nil
					}))
				}
				_, err := start().Join(ctx)
				require.ErrorAs(t, err, new(*async.RestartError))
				if name == "other" {
					require.ErrorIs(t, err, errPlanted)
				}
				require.ErrorIs(t, err, async.ErrNoBeat)
				require.Equal(t, 5, runs)
				require.Equal(t, 5, hooks)
			})
		})
	}
}

// TestABeatCountsForTheRunOfItsContext: not for the one that follows.
func TestABeatCountsForTheRunOfItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var before context.Context
		_, err := async.Start(ctx, func(ctx context.Context) error {
			if before == nil {
				before = ctx
				return errRun
			}
			for ctx.Err() == nil {
				async.Beat(before)
				time.Sleep(time.Second)
			}
			return async.Final(context.Cause(ctx))
		}, everySecond, async.Heartbeat(10*time.Second), async.Timeout(time.Minute)).Join(ctx)
		require.ErrorIs(t, err, async.ErrNoBeat)
	})
}

// TestTheAbortHookIsCalledInARun: once, and not between runs.
func TestTheAbortHookIsCalledInARun(t *testing.T) {
	for name, stop := range stops {
		for when, lasts := range map[string]time.Duration{"in a run": time.Hour, "in the wait": 0} {
			t.Run(name+"/"+when, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					own, cancel := context.WithCancelCause(ctx)
					var hooks atomic.Int32
					f := async.Start(own, func(ctx context.Context) error {
						_ = async.Sleep(ctx, lasts)
						return errRun
					}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Minute)}), async.OnAbort(func(_ context.Context, cause error) error {
						require.Equal(t, errPlanted, cause)
						hooks.Add(1)
						return nil
					}))
					time.Sleep(30 * time.Second)
					stop(f, cancel)
					_, err := f.Join(ctx)
					require.ErrorIs(t, err, errPlanted)
					want := int32(0)
					if lasts > 0 {
						want = 1
					}
					require.Equal(t, want, hooks.Load())
				})
			})
		}
	}
}

// TestADaemonIsStartedAgainUntilItIsDismissed: in a run or in the wait, that is no
// failure, whatever it returns then.
func TestADaemonIsStartedAgainUntilItIsDismissed(t *testing.T) {
	closed := errors.New("http: Server closed")
	for name, lasts := range map[string]time.Duration{"in a run": time.Hour, "in the wait": 0} {
		for how, opts := range map[string][]async.ScopeOption{"plain": nil, "limit": {async.Limit(1)}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					begin := time.Now()
					runs := 0
					require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(ctx context.Context) error {
							if runs++; runs == 1 {
								return errRun
							}
							_ = async.Sleep(ctx, lasts)
							return closed
						}, async.Daemon(), everySecond)
						async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, 3500*time.Millisecond) })
						return nil
					}, opts...))
					tookAbout(t, 3500*time.Millisecond, begin)
				})
			})
		}
	}
	t.Run("what its tasks say as they stop is no failure", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errPlanted })
					<-ctx.Done()
					return closed
				}, async.Daemon(), everySecond)
				return async.Sleep(ctx, time.Second)
			})
			require.NoError(t, err)
		})
	})
	t.Run("its own timeout is a failure", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return closed },
					async.Daemon(), everySecond, async.Timeout(time.Second))
				return async.Sleep(ctx, time.Minute)
			})
			require.ErrorIs(t, err, closed)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
	t.Run("given up it is a failure", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			err := async.Scope(ctx, func(ctx context.Context) error {
				f, _ := failing(100, nil)
				async.Go(ctx, f, async.Daemon(), everySecond)
				return async.Sleep(ctx, time.Minute)
			})
			require.ErrorAs(t, err, new(*async.RestartError))
		})
	})
}
