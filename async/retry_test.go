package async_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// failsTimes returns a function that fails n times, then returns 42, and when, in seconds
// from now, it was called.
func failsTimes(n int, err error) (f func(context.Context) (int, error), at *[]float64) {
	start := time.Now()
	at = new([]float64)
	return func(context.Context) (int, error) {
		if *at = append(*at, time.Since(start).Seconds()); len(*at) <= n {
			return 0, err
		}
		return 42, nil
	}, at
}

func TestACallThatFailsIsMadeAgainUntilItSucceeds(t *testing.T) {
	later := func(attempt int) time.Duration { return time.Duration(attempt) * time.Second }
	for name, test := range map[string]struct {
		err  error
		opts []async.PollOption
		want []float64
	}{
		"any error":         {errProbe, nil, []float64{0, 1, 3, 6}},
		"Again":             {async.Again(nil), nil, []float64{0, 1, 3, 6}},
		"AgainAfter":        {fmt.Errorf("busy: %w", async.AgainAfter(5*time.Second, nil)), nil, []float64{0, 5, 10, 15}},
		"after an interval": {errProbe, []async.PollOption{async.AfterInterval()}, []float64{0.001, 1.001, 3.001, 6.001}},
		"enough attempts":   {errProbe, []async.PollOption{async.Attempts(4), async.Name("n"), async.Timeout(time.Hour)}, []float64{0, 1, 3, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				f, at := failsTimes(3, test.err)
				v, err := async.Retry(ctx, later, f, test.opts...)
				require.NoError(t, err)
				require.Equal(t, 42, v)
				require.Equal(t, test.want, *at)
			})
		})
	}
}

// TestARetryNeedsNoScopeInItsContext.
func TestARetryNeedsNoScopeInItsContext(t *testing.T) {
	f, _ := failsTimes(2, errProbe)
	v, err := async.Retry(context.Background(), async.Every(0), f)
	require.NoError(t, err)
	require.Equal(t, 42, v)
}

// TestARetryThatEndsWithoutAnAnswerSaysWhy, and what the last call has said.
func TestARetryThatEndsWithoutAnAnswerSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		lasts    time.Duration // how long ctx does
		opts     []async.PollOption
		attempts int
		why      error
		text     string
	}{
		"Attempts": {opts: []async.PollOption{async.Attempts(2)}, attempts: 2, text: "no answer after 2 attempts; last error: connection refused"},
		"ctx":      {lasts: 2500 * time.Millisecond, attempts: 3, why: io.EOF, text: "no answer after 3 attempts: EOF; last error: connection refused"},
		"Timeout": {opts: []async.PollOption{async.Timeout(1500 * time.Millisecond)}, attempts: 2, why: context.DeadlineExceeded,
			text: "no answer after 2 attempts: context deadline exceeded (limit 1.5s, waited 1.5s); last error: connection refused"},
		"over before": {opts: []async.PollOption{async.Timeout(-1)}, attempts: 0, why: context.DeadlineExceeded,
			text: "no answer after 0 attempts: context deadline exceeded (the limit had passed before)"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(test.lasts, time.Hour), io.EOF)
				defer cancel()
				calls, at := failsTimes(100, errProbe)
				v, err := async.Retry(ctx, async.Every(time.Second), calls, append(test.opts, async.Name("load"))...)
				var e *async.PollError[int]
				require.ErrorAs(t, err, &e)
				require.Zero(t, v)
				require.Equal(t, test.attempts, e.Attempts)
				require.Len(t, *at, test.attempts)
				if test.attempts > 0 {
					require.Equal(t, errProbe, e.Err)
				}
				if test.why != nil {
					require.ErrorIs(t, err, test.why)
				}
				require.EqualError(t, err, "async: load: "+test.text)
			})
		})
	}
}

// TestARetryIsStopped between calls and in one, by what stops a scope; what the call says
// then is no last error if it only repeats that.
func TestARetryIsStopped(t *testing.T) {
	for name, stop := range map[string]func() async.PollOption{
		"StopOn": func() async.PollOption { return async.StopOn(closedAfter(90*time.Second), io.EOF) },
		"StopWith": func() async.PollOption {
			other, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(90*time.Second, func() { cancel(io.EOF) })
			return async.StopWith(other)
		},
	} {
		for when, lasts := range map[string]time.Duration{"in a call": time.Hour, "between calls": 0} {
			t.Run(name+"/"+when, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					calls, begin := 0, time.Now()
					_, err := async.Retry(ctx, async.Every(time.Minute), func(ctx context.Context) (int, error) {
						if calls++; calls == 2 {
							if err := async.Sleep(ctx, lasts); err != nil {
								return 0, err
							}
						}
						return 0, errProbe
					}, stop())
					tookAbout(t, 90*time.Second, begin)
					var e *async.PollError[int]
					require.ErrorAs(t, err, &e)
					require.Equal(t, errProbe, e.Err)
					require.ErrorIs(t, err, io.EOF)
					require.ErrorIs(t, err, context.Canceled)
					require.Equal(t, 2, calls)
					require.NoError(t, ctx.Err())
				})
			})
		}
	}
}

func TestAFinalErrorIsNotRetried(t *testing.T) {
	for name, err := range map[string]error{"itself": async.Final(errProbe), "wrapped": fmt.Errorf("x: %w", async.Final(errProbe))} {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			f, at := failsTimes(1, err)
			_, got := async.Retry(ctx, async.Every(time.Second), f, async.Timeout(time.Hour))
			require.Len(t, *at, 1)
			require.ErrorIs(t, got, errProbe)
			require.Equal(t, name == "itself", got == errProbe)
			require.False(t, errors.As(got, new(*async.PollError[int])))
		})
	}
}

// TestAPanicOfACallIsRaised, and Goexit ends the goroutine: neither is tried again.
func TestAPanicOfACallIsRaised(t *testing.T) {
	for name, opts := range map[string][]async.PollOption{"plain": nil, "Name": {async.Name("n")}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				calls := 0
				value := panicFrom(func() {
					_, _ = async.Retry(ctx, async.Every(1), func(context.Context) (int, error) { calls++; panic(errProbe) }, opts...)
				})
				require.Equal(t, errProbe, value)
				_, err := async.Start(ctx, func(ctx context.Context) error {
					_, err := async.Retry(ctx, async.Every(1), func(context.Context) (int, error) { calls++; runtime.Goexit(); return 0, nil }, opts...)
					return err
				}).Join(ctx)
				require.ErrorIs(t, err, async.ErrGoexit)
				require.Equal(t, 2, calls)
			})
		})
	}
}

// TestEachCallIsAScope: what it has started has ended before the next, and can fail it.
func TestEachCallIsAScope(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin, calls, ended := time.Now(), 0, 0
		v, err := async.Retry(ctx, async.Every(time.Second), func(ctx context.Context) (int, error) {
			require.Equal(t, calls, ended)
			calls++
			async.Go(ctx, func(context.Context) error {
				time.Sleep(time.Minute)
				if ended++; ended < 3 {
					return errProbe
				}
				return nil
			})
			return calls, nil
		})
		require.NoError(t, err)
		require.Equal(t, 3, v)
		tookAbout(t, 3*time.Minute+2*time.Second, begin)
	})
}

// TestBetweenCallsTheSlotIsLent.
func TestBetweenCallsTheSlotIsLent(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var order []string
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				f, _ := failsTimes(1, errProbe)
				async.Go(ctx, func(context.Context) error { order = append(order, "other"); return nil })
				_, err := async.Retry(ctx, async.Every(time.Second), f, async.Timeout(time.Minute))
				order = append(order, "retried")
				return err
			})
			return nil
		}, async.Limit(1)))
		require.Equal(t, []string{"other", "retried"}, order)
	})
}

func TestRetrySaysWhichOptionsApply(t *testing.T) {
	call := func(context.Context) (int, error) { return 1, nil }
	for name, o := range map[string]async.PollOption{
		"Tolerate": async.Tolerate(1), "FixedRate": async.FixedRate(), "Restart": everySecond, "Grace": async.Grace(1),
		"OnAbort":   async.OnAbort(func(context.Context, error) error { return nil }),
		"OnDiscard": async.OnDiscard(func(int) {}), "Daemon": async.Daemon(), "Leader": async.Leader(),
		"Heartbeat": async.Heartbeat(1), "On": async.On(pool(func(func()) error { return nil })), "Priority": async.Priority(1),
	} {
		require.PanicsWithValue(t, "async: Retry with "+name+": it runs on the goroutine of the caller and takes"+
			" Name, Timeout, HookTimeout, StopOn, StopWith, Attempts and AfterInterval",
			func() { _, _ = async.Retry(t.Context(), async.Every(1), call, o) })
	}
	v, err := async.Retry(t.Context(), async.Every(1), call, async.Name("n"), async.Timeout(time.Hour), async.HookTimeout(1),
		async.StopWith(context.Background()), async.Attempts(1), async.AfterInterval())
	require.NoError(t, err)
	require.Equal(t, 1, v)
}

func TestWhatGoesWrongInTheScopeOfARetryIsNotLost(t *testing.T) {
	for name, opts := range map[string][]async.PollOption{"without options": nil, "named": {async.Name("retry")}} {
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			_, err := async.Retry(ctx, async.Every(1), func(context.Context) (int, error) { return 1, nil }, opts...)
			return err
		}, async.Observe(async.ObserverFunc(func(e async.Event) {
			if e.Kind == async.EventEnd && e.Task != "retry" {
				panic("observer")
			}
		})))
		assert.Error(t, err, name)
	}
}
