package taskqueue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
)

// once runs one task until it does not run any more at once, and returns what the
// store knows then.
func once(t *testing.T, task taskqueue.Task, h taskqueue.Handler, opts ...taskqueue.WorkOption) taskqueue.Info {
	t.Helper()
	q, _ := newQueue(t)
	task.Type = "t"
	id := add(t, q, task)
	require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": h}, append(opts, taskqueue.WorkUntilEmpty())...))
	i, err := q.Get(t.Context(), id)
	require.NoError(t, err)
	return i
}

func returns(err error) taskqueue.Handler {
	return func(context.Context, *taskqueue.Claim) error { return err }
}

var errBoom = errors.New("boom")

// shaky is an error whose methods panic.
type shaky struct{}

func (shaky) Error() string   { panic("Error") }
func (shaky) Is(error) bool   { panic("Is") }
func (shaky) As(any) bool     { panic("As") }
func (shaky) Unwrap() []error { panic("Unwrap") }

// The outcome that an error of a handler makes of its task.
func TestTheErrorSaysWhatBecomesOfTheTask(t *testing.T) {
	minute := taskqueue.Backoff(func(int) time.Duration { return time.Minute })
	for name, c := range map[string]struct {
		err      error
		state    taskqueue.State
		failures int
		attempt  int
		wait     time.Duration
		text     string
	}{
		"an error":                       {errBoom, taskqueue.StateRetrying, 1, 1, time.Minute, "boom"},
		"RetryAfter":                     {taskqueue.RetryAfter(time.Hour, errBoom), taskqueue.StateRetrying, 1, 1, time.Hour, "boom"},
		"RetryAfter of nothing":          {taskqueue.RetryAfter(time.Hour, nil), taskqueue.StateDone, 0, 1, 0, ""},
		"RetryAfter for ever":            {taskqueue.RetryAfter(1<<63-1, errBoom), taskqueue.StateRetrying, 1, 1, taskqueue.MaxDelay, "boom"},
		"Dead":                           {taskqueue.Dead(errBoom), taskqueue.StateDead, 1, 1, 0, "boom"},
		"Dead of nothing":                {taskqueue.Dead(nil), taskqueue.StateDone, 0, 1, 0, ""},
		"Release":                        {taskqueue.Release(errBoom), taskqueue.StateScheduled, 0, 0, time.Second, "boom"},
		"Release of nothing":             {taskqueue.Release(nil), taskqueue.StateScheduled, 0, 0, time.Second, "given back"},
		"Snooze":                         {taskqueue.Snooze(time.Hour), taskqueue.StateScheduled, 0, 0, time.Hour, "run again after 1h"},
		"Snooze for ever":                {taskqueue.Snooze(1<<63 - 1), taskqueue.StateScheduled, 0, 0, taskqueue.MaxDelay, "run again"},
		"one that is wrapped":            {fmt.Errorf("send: %w", taskqueue.Snooze(time.Hour)), taskqueue.StateScheduled, 0, 0, time.Hour, "send: "},
		"Dead in RetryAfter":             {taskqueue.RetryAfter(time.Hour, taskqueue.Dead(errBoom)), taskqueue.StateRetrying, 1, 1, time.Hour, "boom"},
		"RetryAfter in Dead":             {taskqueue.Dead(taskqueue.RetryAfter(time.Hour, errBoom)), taskqueue.StateDead, 1, 1, 0, "boom"},
		"the error of a stop, by itself": {taskqueue.ErrStopping, taskqueue.StateRetrying, 1, 1, time.Minute, "stops"},
		"that of a Cancel, by itself":    {fmt.Errorf("x: %w", taskqueue.ErrCancelled), taskqueue.StateRetrying, 1, 1, time.Minute, "cancelled"},
		"that of a lost lease, itself":   {taskqueue.ErrLeaseLost, taskqueue.StateRetrying, 1, 1, time.Minute, "lease"},
		"one whose methods panic":        {shaky{}, taskqueue.StateRetrying, 1, 1, time.Minute, "has panicked"},
		"a long one":                     {errors.New(strings.Repeat("ä", 100_000)), taskqueue.StateRetrying, 1, 1, time.Minute, "ää …"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				i := once(t, taskqueue.Task{}, returns(c.err), minute)
				assert.Equal(t, c.state, i.State)
				assert.Equal(t, []int{c.failures, c.attempt}, []int{i.Failures, i.Attempt})
				assert.Contains(t, i.LastError, c.text)
				assert.Less(t, len(i.LastError), 5000)
				if !i.State.Ended() {
					assert.WithinDuration(t, now.Add(c.wait), i.DueAt, time.Millisecond)
				}
			})
		})
	}
}

// A failure in the way of a handler is as if it was the handler's.
func TestMiddlewareFailsAsAHandlerDoes(t *testing.T) {
	for name, around := range map[string]taskqueue.Handler{
		"panic":  func(context.Context, *taskqueue.Claim) error { panic(errBoom) },
		"Goexit": func(context.Context, *taskqueue.Claim) error { runtime.Goexit(); return nil },
		"error":  returns(errBoom),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := taskqueue.Handlers{"t": nothing}.Use(func(taskqueue.Handler) taskqueue.Handler { return around })["t"]
				i := once(t, taskqueue.Task{MaxFailures: 1}, h)
				assert.Equal(t, taskqueue.StateDead, i.State)
				assert.Equal(t, 1, i.Failures)
			})
		})
	}
}

func TestUseWrapsEveryHandlerTheFirstOutermost(t *testing.T) {
	var calls []string
	note := func(name string) func(taskqueue.Handler) taskqueue.Handler {
		return func(next taskqueue.Handler) taskqueue.Handler {
			return func(ctx context.Context, c *taskqueue.Claim) error {
				calls = append(calls, name)
				return next(ctx, c)
			}
		}
	}
	own := taskqueue.Handlers{"t": nothing, "nil": nil}
	used := own.Use(note("a"), note("b"))
	assert.NoError(t, used["t"](t.Context(), nil))
	assert.Equal(t, []string{"a", "b"}, calls)
	assert.Nil(t, used["nil"], "Work says what is wrong with it")
	assert.NoError(t, own["t"](t.Context(), nil))
	assert.Len(t, calls, 2, "the handlers themselves are as before")
	assert.Panics(t, func() { own.Use(nil) })
	q, _ := newQueue(t)
	forgets := own.Use(func(taskqueue.Handler) taskqueue.Handler { return nil })
	assert.ErrorContains(t, q.Work(t.Context(), forgets), `"nil" is nil`)
}

func TestMiddlewareThatChangesTheClaimDoesNotChangeWhichRunItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "t", MaxCrashes: 1})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		changes := func(h taskqueue.Handler) taskqueue.Handler {
			return func(ctx context.Context, c *taskqueue.Claim) error {
				c.ID, c.Token = "tenant/"+c.ID, 0
				return h(ctx, c)
			}
		}
		slow := func(ctx context.Context, c *taskqueue.Claim) error {
			c.Progress([]byte("half"))
			time.Sleep(10 * time.Second)
			i, err := s.Get(ctx, "default", id)
			assert.Equal(t, "half", string(i.Progress))
			return err
		}
		require.NoError(t, q.Work(ctx, taskqueue.Handlers{"t": slow}.Use(changes), taskqueue.Lease(2*time.Second), taskqueue.WorkUntilEmpty()))
		i, err := q.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateDone, i.State, i.LastError)
	})
}

func TestTheWaitOfWhatIsReleasedGrowsToAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		add(t, q, taskqueue.Task{Type: "t"})
		var waits []time.Duration
		last := time.Now()
		work, stop := context.WithCancel(t.Context())
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
			waits = append(waits, time.Since(last).Round(time.Second))
			last = time.Now()
			assert.Equal(t, 1, c.Attempt)
			if len(waits) == 10 {
				stop()
				return nil
			}
			return taskqueue.Release(errBoom)
		}}))
		assert.Equal(t, []time.Duration{0, 1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 60e9, 60e9, 60e9}, waits)
	})
}

func TestAHandlerKnowsItsClaimByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		assert.Nil(t, taskqueue.ClaimOf(t.Context()))
		i := once(t, taskqueue.Task{Payload: []byte(`{"To": "ada"}`)}, taskqueue.Typed(func(ctx context.Context, p struct{ To string }) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				taskqueue.ClaimOf(ctx).SetResult([]byte("sent to " + p.To))
				return nil
			})
		}))
		assert.Equal(t, "sent to ada", string(i.Result))
	})
}

func TestTypedRefusesWhatIsNoPayloadOfItsType(t *testing.T) {
	for _, payload := range []string{"", "{", `"text"`, `{"N": "x"}`, `{} {}`} {
		synctest.Test(t, func(t *testing.T) {
			i := once(t, taskqueue.Task{Payload: []byte(payload)}, taskqueue.Typed(func(context.Context, struct{ N int }) error { return nil }))
			assert.Equal(t, taskqueue.StateDead, i.State, payload)
			assert.Contains(t, i.LastError, `the payload of a task of type "t"`)
		})
	}
	assert.Panics(t, func() { taskqueue.Typed[int](nil) })
}

func TestTheTimeoutOfATaskIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		i := once(t, taskqueue.Task{Timeout: time.Minute, MaxFailures: 1}, func(ctx context.Context, _ *taskqueue.Claim) error {
			<-ctx.Done()
			var limit *async.TimeoutError
			assert.ErrorAs(t, context.Cause(ctx), &limit)
			assert.Equal(t, time.Minute, time.Since(begin))
			return ctx.Err()
		})
		assert.Equal(t, taskqueue.StateDead, i.State)
		assert.Equal(t, 1, i.Failures)
	})
}

func TestHeadersAndAllElseReachTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		headers := map[string]string{"trace": "1"}
		task := taskqueue.Task{
			ID: "id", Headers: headers, Payload: []byte{0, 255}, Priority: 3, UniqueKey: "k", Timeout: time.Minute,
			Retention: time.Hour, MaxFailures: 2, MaxCrashes: 4,
		}
		once(t, task, func(_ context.Context, c *taskqueue.Claim) error {
			want := task
			want.Type, want.Queue = "t", taskqueue.DefaultQueue
			assert.Equal(t, want, c.Task)
			assert.Equal(t, []int{1, 0, 0}, []int{c.Attempt, c.Failures, c.Crashes})
			assert.Positive(t, c.Token)
			assert.False(t, c.DueAt.IsZero())
			assert.True(t, c.Deadline().After(time.Now()))
			return nil
		})
	})
}

func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		n := 2*runtime.GOMAXPROCS(0) + 2
		for range n + 1 {
			add(t, q, taskqueue.Task{Type: "t"})
		}
		var mu sync.Mutex
		now, most := 0, 0
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			defer func() {
				mu.Lock()
				now--
				mu.Unlock()
			}()
			assert.Equal(t, []int{25, 3}, []int{c.MaxFailures, c.MaxCrashes})
			assert.WithinDuration(t, time.Now().Add(30*time.Second), c.Deadline(), 2*time.Second)
			return async.Sleep(ctx, time.Second)
		}}, taskqueue.WorkUntilEmpty()))
		assert.Equal(t, n, most)
	})
	for failures, want := range map[int]time.Duration{-1: time.Second, 1: time.Second, 2: 2 * time.Second, 12: 2048 * time.Second, 13: time.Hour, 1 << 30: time.Hour} {
		assert.InDelta(t, want, taskqueue.DefaultBackoff(failures), float64(want)/4)
	}
}
