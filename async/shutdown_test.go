package async_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/bridge"
)

func TestAnAbortedRootTaskIsAStragglerUntilItEndsAndShutdownReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		f := async.Execute(ctx, stubborn(time.Minute, 1, nil), async.Name("stubborn"))
		require.Equal(t, []string{"stubborn"}, asynctest.Live(ctx))
		_, err := f.Await(ctx, time.Second)
		require.Error(t, err)
		require.Equal(t, async.StateAborting, f.State())
		require.Equal(t, []string{"stubborn"}, asynctest.Live(ctx), "still there, so still seen")

		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err = async.Shutdown(brief)
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "stubborn", left.Left[0].Task)
		require.Contains(t, left.Left[0].Stack, "time.Sleep", "with the stack of its goroutine")
		require.ErrorContains(t, err, "stubborn")

		<-f.Done()
		synctest.Wait()
		require.Empty(t, asynctest.Live(ctx))
		require.NoError(t, async.Shutdown(ctx))
	})
}

func TestShutdownDoesNotWaitForEverForAHook(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, _ = asynctest.Root(ctx)
		async.Detach(ctx, "hooked", func(ctx context.Context) error { <-ctx.Done(); return nil },
			async.HookTimeout(time.Second),
			async.OnAbort(func(context.Context, error) error { time.Sleep(24 * time.Hour); return nil }))
		patient, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorContains(t, async.Shutdown(patient), "hook of hooked")
		require.Less(t, time.Since(start), time.Minute)
		require.NoError(t, async.Shutdown(context.WithoutCancel(ctx)), "told once, and now it waits for the hook to end")
	})
}

// TestShutdownWaitsForAbortHooksWherever the task stands: of a straggler that
// was let go, and below a detached task.
func TestShutdownWaitsForAbortHooksWherever(t *testing.T) {
	hook := func(ended *bool) async.TaskOption {
		return async.OnAbort(func(context.Context, error) error { time.Sleep(4 * time.Second); *ended = true; return nil })
	}
	for name, start := range map[string]func(ctx context.Context, ended *bool){
		"of a straggler": func(ctx context.Context, ended *bool) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { time.Sleep(4 * time.Second); return nil }, hook(ended))
				return errPlanted
			}, async.DetachAfter(time.Second))
		},
		"below a detached task": func(ctx context.Context, ended *bool) {
			async.Detach(ctx, "detached", func(ctx context.Context) error {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, hook(ended))
					return nil
				})
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, _ = asynctest.Root(ctx)
				ended := false
				start(ctx, &ended)
				patient, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				require.NoError(t, async.Shutdown(patient))
				require.True(t, ended)
			})
		})
	}
}

// TestShutdownLeavesShieldsAtTheRootTheirTime: those that were opened outside of
// all scopes, after the scope of their ctx has ended, and by a late exit hook.
func TestShutdownLeavesShieldsAtTheRootTheirTime(t *testing.T) {
	ended := func(ctx context.Context) (ended context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error { ended = ctx; return nil })
		return ended
	}
	for name, shield := range map[string]func(ctx context.Context, f func(context.Context) error) error{
		"outside of all scopes": func(ctx context.Context, f func(context.Context) error) error {
			return async.Shield(ctx, time.Minute, f)
		},
		"after the end of a scope": func(ctx context.Context, f func(context.Context) error) error {
			return async.Shield(ended(ctx), time.Minute, f)
		},
		"late exit hook": func(ctx context.Context, f func(context.Context) error) (err error) {
			async.OnExit(ended(ctx), func(ctx context.Context, _ error) error { err = f(ctx); return nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, check := asynctest.Root(context.WithoutCancel(ctx))
				var got error
				go func() {
					got = shield(ctx, func(ctx context.Context) error { return async.Sleep(ctx, 3*time.Second) })
				}()
				synctest.Wait()
				hard, cancel := context.WithCancel(ctx)
				cancel()
				async.Detach(ctx, "left", func(ctx context.Context) error { <-ctx.Done(); return nil })
				var left *async.StragglerError
				require.ErrorAs(t, async.Shutdown(hard), &left, "it is named")
				time.Sleep(time.Minute)
				synctest.Wait()
				require.NoError(t, errors.Join(got, check()))
			})
		})
	}
}

// TestShutdownStopsEveryTaskBelowTheRoot whatever ctx it was started with, once
// its own ctx is done.
func TestShutdownStopsEveryTaskBelowTheRoot(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, task func(ctx context.Context) error){
		"detached": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Detach(ctx, "detached", task)
		},
		"root task": func(ctx context.Context, task func(ctx context.Context) error) { async.Start(ctx, task) },
		"root task, WithoutCancel": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Start(context.WithoutCancel(ctx), task)
		},
		"below a root task, WithoutCancel": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Start(ctx, func(ctx context.Context) error {
				async.Go(context.WithoutCancel(ctx), task)
				return nil
			})
		},
		"in a scope below a detached task": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Detach(ctx, "detached", func(ctx context.Context) error {
				return async.Scope(context.WithoutCancel(ctx), func(ctx context.Context) error {
					async.Go(context.WithoutCancel(ctx), task)
					return nil
				})
			})
		},
		"started by one that was told to stop": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Detach(ctx, "detached", func(ctx context.Context) error {
				<-ctx.Done()
				async.Go(context.WithoutCancel(ctx), task)
				return nil
			})
		},
		"straggler": func(ctx context.Context, task func(ctx context.Context) error) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(context.WithoutCancel(ctx), task)
				return errPlanted
			}, async.DetachAfter(0))
		},
		"in a scope of a bare goroutine": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Detach(ctx, "until then", func(ctx context.Context) error { <-ctx.Done(); return nil })
			go func() {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					async.Go(context.WithoutCancel(ctx), task)
					return nil
				})
			}()
		},
		"queued": func(ctx context.Context, task func(ctx context.Context) error) {
			async.Detach(ctx, "detached", func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(context.WithoutCancel(ctx), task)
					async.Go(context.WithoutCancel(ctx), task)
					return nil
				}, async.Limit(1))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, _ := asynctest.Root(context.Background())
				begin := time.Now()
				var cause error
				start(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return nil
				})
				synctest.Wait()
				patient, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				err := async.Shutdown(patient)
				require.NotErrorAs(t, err, new(*async.StragglerError))
				require.Equal(t, async.ErrShutdown, cause)
				require.Empty(t, asynctest.Live(ctx))
				require.Less(t, time.Since(begin), 1100*time.Millisecond)
			})
		})
	}
}

// TestShutdownLeavesTheCallerAlone, and what it is part of, wherever it is called.
func TestShutdownLeavesTheCallerAlone(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, shutdown func(ctx context.Context) error){
		"detached": func(ctx context.Context, shutdown func(ctx context.Context) error) {
			async.Detach(ctx, "caller", shutdown)
		},
		"below a root task": func(ctx context.Context, shutdown func(ctx context.Context) error) {
			async.Start(ctx, func(ctx context.Context) error { return async.Scope(ctx, shutdown) })
		},
		"scope": func(ctx context.Context, shutdown func(ctx context.Context) error) {
			_ = async.Scope(ctx, shutdown)
		},
		"straggler": func(ctx context.Context, shutdown func(ctx context.Context) error) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					time.Sleep(time.Second)
					return async.Scope(context.WithoutCancel(ctx), shutdown)
				})
				return errPlanted
			}, async.DetachAfter(0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, _ = asynctest.Root(context.WithoutCancel(ctx))
				called := false
				call(ctx, func(ctx context.Context) error {
					hard, cancel := context.WithCancel(ctx)
					cancel()
					other := async.Start(asRoot(ctx), func(ctx context.Context) error { return nil })
					require.NoError(t, async.Shutdown(hard))
					_, err := other.Wait(ctx)
					require.NoError(t, err)
					require.NoError(t, ctx.Err())
					called = true
					return nil
				})
				time.Sleep(time.Minute)
				synctest.Wait()
				require.True(t, called)
			})
		})
	}
}

// asRoot returns ctx; what is started with it belongs to the caller.
func asRoot(ctx context.Context) context.Context { return ctx }

// TestShutdownAsksAHookForNoMoreThanItsTime, and protects Shield.
func TestShutdownDoesNotCutAShieldedStretchShort(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, _ = asynctest.Root(context.WithoutCancel(ctx))
		var shielded error
		async.Detach(ctx, "cleaner", func(ctx context.Context) error {
			<-ctx.Done()
			return async.Shield(ctx, time.Minute, func(ctx context.Context) error {
				time.Sleep(50 * time.Millisecond)
				shielded = ctx.Err()
				return errors.Join(ctx.Err())
			})
		})
		hard, cancel := context.WithCancel(ctx)
		cancel()
		require.NoError(t, async.Shutdown(hard))
		require.NoError(t, shielded)
	})
}

func TestADetachedTaskOutlivesItsScopeOnRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		type key struct{}
		ended := make(chan struct{})
		require.NoError(t, async.Scope(context.WithValue(ctx, key{}, "v"), func(ctx context.Context) error {
			async.Detach(ctx, "flush", func(ctx context.Context) error {
				defer close(ended)
				require.Equal(t, "v", ctx.Value(key{}))
				time.Sleep(time.Minute)
				return ctx.Err()
			})
			return nil
		}))
		require.Equal(t, []string{"flush"}, asynctest.Live(ctx))
		require.NoError(t, async.Shutdown(ctx), "waits for it")
		<-ended
		require.Empty(t, asynctest.Live(ctx))
		require.Panics(t, func() { async.Detach(ctx, "late", nothing) }, "refused after Shutdown")
	})
}

func TestShutdownCancelsWaitsForHooksAndReportsWhoIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context) {
		ctx, _ := asynctest.Root(context.WithoutCancel(t.Context()))
		failed := errors.New("failed")
		async.Detach(ctx, "obeys", func(ctx context.Context) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), async.ErrShutdown) {
				return context.Cause(ctx)
			}
			return failed
		})
		hooked := false
		async.Detach(ctx, "stubborn", func(context.Context) error { time.Sleep(time.Hour); return nil },
			async.OnAbort(func(context.Context, error) error { time.Sleep(time.Second); hooked = true; return nil }))
		patient, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err := async.Shutdown(patient)
		require.True(t, hooked, "waits for abort hooks")
		require.ErrorIs(t, err, failed)
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "stubborn", left.Left[0].Task)
		require.Contains(t, left.Left[0].Stack, "time.Sleep")
		require.NoError(t, async.Shutdown(ctx), "told once, and now it waits for the other to end")
	})
}

// TestAPanicOfADetachedTaskEndsTheProcess runs itself as another process.
func TestAPanicOfADetachedTaskEndsTheProcess(t *testing.T) {
	if os.Getenv("AMBIT_TEST_CRASH") != "" {
		async.Detach(context.Background(), "crash", func(context.Context) error { plantedPanic(); return nil })
		_ = async.Shutdown(context.Background())
		select {}
	}
	out, err := runSelf(t, "AMBIT_TEST_CRASH=1")
	require.Error(t, err)
	require.Contains(t, out, "plantedPanic", "with the stack of who panicked")
}

func TestAPlantedStragglerIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, check := asynctest.Root(t.Context())
		async.Detach(ctx, "planted", func(context.Context) error { time.Sleep(time.Hour); return nil })
		require.Equal(t, []string{"planted"}, asynctest.Live(ctx))
		require.ErrorContains(t, check(), "planted")
		time.Sleep(time.Hour)
	})
}

// toldRoot records what a root of its own is told.
type toldRoot struct {
	mu   sync.Mutex
	lost []error
	said []string
}

func (r *toldRoot) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, e := range r.lost {
		fmt.Fprintf(&b, "LOST %v\n", e)
	}
	for _, s := range r.said {
		fmt.Fprintf(&b, "SAID %s\n", s)
	}
	return b.String()
}

func (r *toldRoot) count(text string) int { return strings.Count(r.all(), text) }

// withToldRoot runs f in a bubble, with a root that records.
func withToldRoot(t *testing.T, f func(t *testing.T, ctx context.Context, r *toldRoot)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := new(toldRoot)
		ctx := bridge.NewRoot(context.Background(),
			func(err error) { r.mu.Lock(); defer r.mu.Unlock(); r.lost = append(r.lost, err) },
			func(s string) { r.mu.Lock(); defer r.mu.Unlock(); r.said = append(r.said, s) })
		f(t, ctx, r)
	})
}

var (
	errFirst  = errors.New("failure A")
	errSecond = errors.New("failure B")
)

// onStop waits until ctx is done and returns a text around its error.
func onStop(text string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("%s: %w", text, ctx.Err())
	}
}

func TestDaemonsGoWhenTheRestHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		joined := false
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				require.Equal(t, async.ErrDismissed, context.Cause(ctx))
				require.Equal(t, time.Minute, time.Since(begin))
				joined = true
				return ctx.Err() // an echo
			}, async.Daemon())
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
			return nil
		}))
		require.True(t, joined)
	})
}
