package async_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/internal/bridge"
	"github.com/stretchr/testify/require"
)

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

func TestDetachAfterLetsGoOfStragglersOnRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		exited := make(chan struct{})
		begin := time.Now()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { close(exited); return nil })
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil }, async.Name("stubborn"))
			return errPlanted
		}, async.DetachAfter(time.Second), async.Name("outer"))
		require.Equal(t, time.Second, time.Since(begin))
		require.ErrorIs(t, err, errPlanted)
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Equal(t, "stubborn", left.Left[0].Task)
		require.Contains(t, left.Left[0].Stack, "time.Sleep")
		require.Equal(t, []string{"outer"}, asynctest.Live(ctx))
		<-exited // only now, after the last of them
		require.Equal(t, time.Minute, time.Since(begin))
	})
}

func TestOnStallNamesWhoIsLeftOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		calls := 0
		begin := time.Now()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil }, async.Name("stubborn"))
			return errPlanted
		}, async.OnStall(time.Second, func(e *async.StragglerError) {
			calls++
			require.Equal(t, time.Second, time.Since(begin))
			require.Equal(t, "stubborn", e.Left[0].Task)
			require.ErrorIs(t, e, errPlanted)
		}))
		require.Equal(t, errPlanted, err)
		require.Equal(t, 1, calls)
	})
}

func TestOnFailureDecidesWhetherAFailureIsOne(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		small, large := errors.New("small"), errors.New("large")
		var seen atomic.Int32 // the hook is called by the goroutines of the tasks
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return small })
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return large })
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }) // an echo: not asked about
			return nil
		}, async.OnFailure(func(err error) error {
			seen.Add(1)
			if errors.Is(err, small) {
				return nil
			}
			return err
		}))
		require.Equal(t, large, err)
		require.EqualValues(t, 2, seen.Load())
	})
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

func TestAScopeKeepsTheFirst32ErrorsAndACount(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			for i := range 100 {
				async.Go(ctx, func(context.Context) error {
					time.Sleep(time.Duration(i+1) * time.Second) // looks at no context
					return fmt.Errorf("failure %d", i)
				})
			}
			return nil
		})
		var all *async.ScopeError
		require.ErrorAs(t, err, &all)
		require.Len(t, all.Errors, 32)
		require.Equal(t, 68, all.Dropped)
		require.EqualError(t, all.Errors[0], "failure 0", "the one that decided")
	})
}

func TestObserversSeeStartsEndsAndPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var inner, outer []string
		note := func(to *[]string) async.Observer {
			return async.ObserverFunc(func(e async.Event) {
				*to = append(*to, fmt.Sprint(e.Task, " ", e.Kind, " ", e.Duration, " ", e.Cause))
			})
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				f := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, async.Name("task"))
				time.Sleep(time.Second)
				f.Cancel(errPlanted)
				return nil
			}, async.Observe(note(&inner)), async.Name("inner"))
		}, async.Observe(note(&outer))))
		require.Equal(t, []string{"task start 0s <nil>", "task end 1s planted"}, inner)
		require.Equal(t, []string{"inner start 0s <nil>", "task start 0s <nil>", "task end 1s planted", "inner end 1s <nil>"}, outer)
	})
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
