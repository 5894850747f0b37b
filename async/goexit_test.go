package async_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// TestGoexitAnywhereIsToldAndNobodyHangs is the same for runtime.Goexit, which
// is what t.FailNow does.
func TestGoexitAnywhereIsToldAndNobodyHangs(t *testing.T) {
	for name, place := range places {
		if name == "body" {
			continue // takes the goroutine along, see below
		}
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						select {
						case <-ctx.Done():
						case <-time.After(time.Minute):
						}
						return nil
					})
					place(ctx, runtime.Goexit)
					return nil
				})
				require.ErrorIs(t, err, async.ErrGoexit)
			})
		})
	}
}

func TestABodyThatCallsGoexitJoinsFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		joined := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); joined = true; return nil })
				runtime.Goexit()
				return nil
			})
			t.Error("Goexit was stopped")
		}()
		<-done
		require.True(t, joined)
	})
}

// TestAnErrorIsListedOnceHoweverManyRepeatIt holds for ErrGoexit, too.
func TestAnErrorIsListedOnceHoweverManyRepeatIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			for i := range 2 {
				async.Go(ctx, func(context.Context) error {
					time.Sleep(time.Duration(i) * time.Second)
					runtime.Goexit()
					return nil
				})
			}
			return nil
		})
		require.Equal(t, async.ErrGoexit, err)
	})
}

func TestOnFailureIsAskedAboutAnErrorThatMentionsGoexit(t *testing.T) {
	var seen error
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			err := second(async.Start(ctx, func(context.Context) error { runtime.Goexit(); return nil }).Await(ctx, 0))
			return fmt.Errorf("connection: %w", err)
		})
		return nil
	}, async.OnFailure(func(err error) error { seen = err; return nil })))
	require.ErrorIs(t, seen, async.ErrGoexit)
}

func TestAnItemWithATimeLimitThatCallsGoexitTellsAll(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			results, err := async.ForkJoin(ctx, []int{1}, func(ctx context.Context, _ int) (int, error) {
				async.Go(ctx, func(context.Context) error { return errPlanted })
				_ = async.Sleep(ctx, time.Second)
				runtime.Goexit()
				return 0, nil
			}, async.ItemTimeout(time.Hour)).Await(ctx, 0)
			require.NoError(t, err)
			require.ErrorIs(t, results[0].Err, errPlanted)
			require.ErrorIs(t, results[0].Err, async.ErrGoexit)
			return nil
		}))
	})
}

// TestFailNowInATaskFailsTheTestAndJoins runs tests that fail as other
// processes, because a test that fails cannot be caught.
func TestFailNowInATaskFailsTheTestAndJoins(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, f func(context.Context) error) error{
		"body": func(ctx context.Context, f func(context.Context) error) error { return f(ctx) },
		"Go":   func(ctx context.Context, f func(context.Context) error) error { async.Go(ctx, f); return nil },
		"future": func(ctx context.Context, f func(context.Context) error) error {
			_, err := async.Start(ctx, f).Wait(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("AMBIT_TEST_FAILNOW") != "" {
				defer fmt.Println("the test has come to its end")
				err := async.Scope(t.Context(), func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); fmt.Println("a sibling was joined"); return nil })
					return start(ctx, func(context.Context) error { require.FailNow(t, "no good"); return nil })
				})
				fmt.Println("Scope returned:", err)
				return
			}
			out, err := runSelf(t, "AMBIT_TEST_FAILNOW=1")
			require.Error(t, err, out)
			require.Contains(t, out, "no good")
			require.Contains(t, out, "a sibling was joined")
			require.Contains(t, out, "the test has come to its end")
			require.NotContains(t, out, "panic:")
			if name != "body" {
				require.Contains(t, out, "Scope returned: "+async.ErrGoexit.Error())
			}
		})
	}
}
