package async_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

var errProbe = errors.New("connection refused")

// ticks returns when, in seconds from now, the probes of a poll are made, each
// of which takes as long as work says. After them it is done.
func ticks(t *testing.T, interval async.Interval, work []float64, opts ...async.PollOption) []float64 {
	var at []float64
	inBubble(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		v, err := async.Poll(ctx, interval, func(context.Context) (string, bool, error) {
			at = append(at, time.Since(start).Seconds())
			time.Sleep(time.Duration(work[len(at)-1] * float64(time.Second)))
			return "up", len(at) == len(work), nil
		}, opts...).Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, "up", v)
	})
	return at
}

func TestWhenProbesAreMade(t *testing.T) {
	second := async.Every(time.Second)
	counted := func(attempt int) time.Duration { return time.Duration(attempt) * time.Second }
	for name, test := range map[string]struct {
		interval async.Interval
		opts     []async.PollOption
		work     []float64 // how long each takes
		want     []float64
	}{
		"fixed delay":                    {second, nil, []float64{0, 0.5, 2, 0}, []float64{0, 1, 2.5, 5.5}},
		"after an interval":              {second, []async.PollOption{async.AfterInterval()}, []float64{0, 0.5, 0}, []float64{1, 2, 3.5}},
		"fixed rate":                     {second, []async.PollOption{async.FixedRate()}, []float64{0, 0.5, 0.25, 0}, []float64{0, 1, 2, 3}},
		"fixed rate, slow probes":        {second, []async.PollOption{async.FixedRate()}, []float64{0, 2.5, 0, 0.5, 1.5, 0}, []float64{0, 1, 4, 5, 6, 8}},
		"fixed rate, just in time":       {second, []async.PollOption{async.FixedRate()}, []float64{1, 1, 0}, []float64{0, 1, 2}},
		"fixed rate, after an interval":  {second, []async.PollOption{async.FixedRate(), async.AfterInterval()}, []float64{0.5, 1.5, 0}, []float64{1, 2, 4}},
		"the interval gets the attempts": {counted, nil, []float64{0, 0, 0, 0}, []float64{0, 1, 3, 6}},
		"and 0 before the first":         {counted, []async.PollOption{async.AfterInterval()}, []float64{0, 0, 0}, []float64{0.001, 1.001, 3.001}},
		"backoff":                        {async.Backoff(time.Second, 5*time.Second), nil, []float64{0, 0, 0, 0, 0, 0}, []float64{0, 1, 3, 7, 12, 17}},
		"zero":                           {async.Every(0), nil, []float64{0, 0, 0}, []float64{0, 0.001, 0.002}},
		"negative":                       {async.Every(-time.Hour), nil, []float64{0, 0, 0}, []float64{0, 0.001, 0.002}},
		"zero at a fixed rate":           {async.Every(0), []async.PollOption{async.FixedRate()}, []float64{0, 0, 0}, []float64{0, 0.001, 0.002}},
		"jitter that is no number":       {async.Jitter(math.NaN(), second), nil, []float64{0, 0}, []float64{0, 1}},
		"negative jitter":                {async.Jitter(-3, second), nil, []float64{0, 0}, []float64{0, 1}},
		"jitter of a negative interval":  {async.Jitter(0.5, async.Every(math.MinInt64)), nil, []float64{0, 0}, []float64{0, 0.001}},
	} {
		t.Run(name, func(t *testing.T) {
			require.InDeltaSlice(t, test.want, ticks(t, test.interval, test.work, test.opts...), 1e-9)
		})
	}
}

// step is what one probe returns.
type step struct {
	phase string
	done  bool
	err   error
}

func TestHowAPollEnds(t *testing.T) {
	for name, test := range map[string]struct {
		steps []step // the last one is repeated
		opts  []async.PollOption
		value string // the answer
		want  *async.PollError[string]
		is    []error
		after time.Duration
	}{
		"done at once":                  {steps: []step{{"Running", true, nil}}, value: "Running"},
		"done":                          {steps: []step{{"Pending", false, nil}, {"Running", true, nil}}, value: "Running", after: time.Second},
		"an error ends it":              {steps: []step{{"Pending", false, nil}, {"", false, errProbe}}, want: &async.PollError[string]{Attempts: 2, Value: "Pending", Err: errProbe}, is: []error{errProbe}, after: time.Second},
		"an error beside done":          {steps: []step{{"x", true, errProbe}}, want: &async.PollError[string]{Attempts: 1, Err: errProbe}, is: []error{errProbe}},
		"attempts":                      {steps: []step{{"Pending", false, nil}}, opts: []async.PollOption{async.Attempts(3)}, want: &async.PollError[string]{Attempts: 3, Value: "Pending"}, after: 2 * time.Second},
		"the last attempt is done":      {steps: []step{{"", false, nil}, {"Running", true, nil}}, opts: []async.PollOption{async.Attempts(2)}, value: "Running", after: time.Second},
		"tolerated, then done":          {steps: []step{{"", false, errProbe}, {"", false, errProbe}, {"Running", true, nil}}, opts: []async.PollOption{async.Tolerate(2)}, value: "Running", after: 2 * time.Second},
		"one more than tolerated":       {steps: []step{{"", false, errProbe}}, opts: []async.PollOption{async.Tolerate(2)}, want: &async.PollError[string]{Attempts: 3, Err: errProbe}, is: []error{errProbe}, after: 2 * time.Second},
		"only consecutive ones count":   {steps: []step{{"", false, errProbe}, {"a", false, nil}, {"", false, errProbe}, {"b", true, nil}}, opts: []async.PollOption{async.Tolerate(1)}, value: "b", after: 3 * time.Second},
		"not yet is no error":           {steps: []step{{"", false, async.Again(errProbe)}, {"", false, async.Again(nil)}, {"c", true, nil}}, value: "c", after: 2 * time.Second},
		"done wins over nothing":        {steps: []step{{"c", true, async.Again(nil)}}, value: "c"},
		"an error is not yet, not done": {steps: []step{{"c", true, async.Again(errProbe)}, {"d", true, nil}}, value: "d", after: time.Second},
		"not yet, wrapped":              {steps: []step{{"", false, fmt.Errorf("asking: %w", async.Again(errProbe))}, {"c", true, nil}}, value: "c", after: time.Second},
		"not yet resets the count": {steps: []step{{"", false, errProbe}, {"", false, async.Again(nil)}, {"", false, errProbe}, {"d", true, nil}},
			opts: []async.PollOption{async.Tolerate(1)}, value: "d", after: 3 * time.Second},
		"not yet is remembered": {steps: []step{{"Pending", false, async.Again(errProbe)}, {"Starting", false, nil}},
			opts: []async.PollOption{async.Attempts(2)}, want: &async.PollError[string]{Attempts: 2, Value: "Starting", Err: async.Again(errProbe)}, is: []error{errProbe}, after: time.Second},
		"not yet, without news": {steps: []step{{"Pending", false, nil}, {"", false, async.Again(errProbe)}},
			opts: []async.PollOption{async.Attempts(2)}, want: &async.PollError[string]{Attempts: 2, Value: "Pending", Err: async.Again(errProbe)}, is: []error{errProbe}, after: time.Second},
		"the server says when": {steps: []step{{"", false, async.AgainAfter(5*time.Second, nil)}, {"e", true, nil}}, value: "e", after: 5 * time.Second},
		"at a fixed rate it is the next tick then": {steps: []step{{"", false, async.AgainAfter(2500*time.Millisecond, nil)}, {"e", true, nil}},
			opts: []async.PollOption{async.FixedRate()}, value: "e", after: 3 * time.Second},
		"now is soon": {steps: []step{{"", false, async.AgainAfter(-1, nil)}, {"e", true, nil}}, value: "e", after: time.Millisecond},
		"its time is up": {steps: []step{{"Pending", false, async.Again(errProbe)}}, opts: []async.PollOption{async.Timeout(2500 * time.Millisecond)},
			want: &async.PollError[string]{Attempts: 3, Value: "Pending", Err: async.Again(errProbe)}, is: []error{context.DeadlineExceeded, errProbe}, after: 2500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				n := 0
				v, err := async.Poll(ctx, async.Every(time.Second), func(context.Context) (string, bool, error) {
					s := test.steps[min(n, len(test.steps)-1)]
					n++
					return s.phase, s.done, s.err
				}, test.opts...).Await(ctx, 0)
				require.Equal(t, test.after, time.Since(start))
				require.Equal(t, test.value, v)
				if test.want == nil {
					require.NoError(t, err)
					return
				}
				var got *async.PollError[string]
				require.ErrorAs(t, err, &got)
				require.Equal(t, test.want.Attempts, got.Attempts)
				require.Equal(t, test.want.Value, got.Value)
				require.Equal(t, test.want.Err, got.Err)
				for _, is := range test.is {
					require.ErrorIs(t, err, is)
				}
			})
		})
	}
}

func TestNoProbeAfterTheContextIsDone(t *testing.T) {
	for name, stop := range map[string]func(f *async.Future[int], cancel context.CancelCauseFunc) error{
		"cancel": func(_ *async.Future[int], cancel context.CancelCauseFunc) error {
			cancel(errCancelWhy)
			return errCancelWhy
		},
		"Cancel": func(f *async.Future[int], _ context.CancelCauseFunc) error {
			f.Cancel(errCancelBoom)
			return errCancelBoom
		},
		"timeout": func(f *async.Future[int], _ context.CancelCauseFunc) error {
			_, err := f.Await(context.Background(), -1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, outer context.Context) {
				ctx, cancel := context.WithCancelCause(outer)
				defer cancel(nil)
				probes := 0
				f := async.Poll(ctx, async.Every(time.Second), func(context.Context) (int, bool, error) { probes++; return probes, false, nil })
				time.Sleep(2500 * time.Millisecond)
				why := stop(f, cancel)
				start := time.Now()
				_, err := f.Wait(outer)
				require.Zero(t, time.Since(start), "it does not sleep on")
				require.ErrorIs(t, err, why)
				time.Sleep(time.Hour)
				require.Equal(t, 3, probes)
				var got *async.PollError[int]
				require.ErrorAs(t, err, &got)
				require.Equal(t, 3, got.Value)
			})
		})
	}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		_, err := async.Poll(ctx, async.Every(1), func(context.Context) (int, bool, error) { t.Error("probed"); return 0, true, nil }).Wait(context.WithoutCancel(ctx))
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestAProbeThatHangsIsAbortedOnTime(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		unblock := make(chan struct{})
		f := async.Poll(ctx, async.Every(time.Second), func(context.Context) (int, bool, error) {
			<-unblock // does not look at its context
			return 0, false, errProbe
		}, async.OnAbort(func(context.Context, error) error { close(unblock); return nil }))
		_, err := f.Await(ctx, time.Minute)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		tookAbout(t, time.Minute, start)
		_, err = f.Await(ctx, 0)
		require.ErrorIs(t, err, errProbe)
	})
}

func TestAPanicOfAProbeOrAnInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var p *async.PanicError
		_, err := async.Poll(ctx, async.Every(1), func(context.Context) (int, bool, error) { plantedPanic(); return 0, true, nil }).Await(ctx, 0)
		require.ErrorAs(t, err, &p)
		_, err = async.Repeat(ctx, func(int) time.Duration { plantedPanic(); return 0 }, func(context.Context) error { return nil }).Await(ctx, 0)
		require.ErrorAs(t, err, &p)
	})
}

func TestRepeat(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		calls := 0
		count := func(context.Context) error { calls++; return nil }
		_, err := async.Repeat(ctx, async.Every(time.Second), count, async.Attempts(5)).Await(ctx, 0)
		require.NoError(t, err, "its attempts were what was asked for")
		require.Equal(t, 5, calls)

		_, err = async.Repeat(ctx, async.Every(time.Second), func(context.Context) error { return errProbe }).Await(ctx, 0)
		require.ErrorIs(t, err, errProbe)

		calls = 0
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Repeat(ctx, async.Every(time.Second), count, async.Daemon())
			return async.Sleep(ctx, 9500*time.Millisecond)
		}), "a heartbeat ends with its scope and fails nobody")
		require.Equal(t, 10, calls)

		failed := false
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Repeat(ctx, async.Every(time.Second), func(context.Context) error {
				if failed {
					return nil
				}
				failed = true
				return errProbe
			}, async.Tolerate(1), async.Daemon())
			return async.Sleep(ctx, time.Minute)
		}), "what was tolerated is no failure at the end")

		require.Equal(t, errCancelBoom, async.Scope(ctx, func(ctx context.Context) error {
			async.Repeat(ctx, async.Every(time.Second), count)
			_ = async.Sleep(ctx, time.Minute)
			return errCancelBoom
		}), "that it was stopped is an echo")
	})
}

func TestMisuseOfPollingPanics(t *testing.T) {
	ctx, every := t.Context(), async.Every(1)
	for name, f := range map[string]func(){
		"nil probe":           func() { async.Poll[int](ctx, every, nil) },
		"nil interval":        func() { async.Poll(ctx, nil, func(context.Context) (int, bool, error) { return 0, true, nil }) },
		"nil function":        func() { async.Repeat(ctx, every, nil) },
		"nil jitter":          func() { async.Jitter(1, nil) },
		"no attempts":         func() { async.Attempts(0) },
		"negative toleration": func() { async.Tolerate(-1) },
		"nil context":         func() { var none context.Context; _ = async.Sleep(none, 1) },
	} {
		t.Run(name, func(t *testing.T) { require.Panics(t, f) })
	}
}

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
