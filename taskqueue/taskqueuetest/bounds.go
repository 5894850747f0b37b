package taskqueuetest

import (
	"fmt"
	"math"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// failAll says that runs have failed, in one step.
func (f *fixture) failAll(runs []taskqueue.Info, after func(i int) time.Duration) {
	f.Helper()
	all := make([]store.Outcome, len(runs))
	for i, run := range runs {
		all[i] = store.Outcome{Ref: ref(run), Kind: store.Failed, After: after(i)}
	}
	f.settleAll(all...)
}

// large adds ten tasks with the largest payloads of one task.
func (f *fixture) large() (ids []string) {
	f.Helper()
	for i := range 10 {
		t := task(fmt.Sprint(i))
		t.Payload = make([]byte, taskqueue.MaxPayload)
		f.add(t)
		ids = append(ids, t.ID)
	}
	return ids
}

// A step that looked at all tasks to find those of a state would look at few of them
// here: the others stand before them.
func purgeInSteps(f *fixture) {
	f.many(2100, func(_ int, t *taskqueue.Task) {})
	for range 3 {
		f.failAll(f.claim(700), func(int) time.Duration { return time.Hour })
	}
	f.many(1200, func(i int, t *taskqueue.Task) { t.ID, t.Delay = fmt.Sprint("later", i), 2*time.Hour })
	f.many(1100, func(i int, t *taskqueue.Task) { t.ID = fmt.Sprint("now", i) })
	f.counts(2100, taskqueue.StateRetrying)
	f.counts(1200, taskqueue.StateScheduled)
	f.counts(1100, taskqueue.StateReady)

	n, next := f.purgeStep(taskqueue.StateReady, "")
	assert.Equal(f, taskqueue.MaxBatch, n)
	assert.NotEmpty(f, next)
	assert.Equal(f, 100, f.purge(taskqueue.StateReady))
	assert.Equal(f, 1200, f.purge(taskqueue.StateScheduled), "they stand behind more retries than a step looks at")
	assert.Equal(f, 2100, f.purge(taskqueue.StateRetrying))
	for s, n := range f.stats().States {
		assert.Zero(f, n, "%v", s)
	}
}

func purgeOfLargePayloads(f *fixture) {
	f.large()
	n, next := f.purgeStep(taskqueue.StateReady, "")
	assert.Less(f, n, 6)
	assert.NotEmpty(f, next)
	assert.Equal(f, 10, n+f.purge(taskqueue.StateReady))
}

// A due task stands before what is scheduled, in the index: to find the latter no step
// looks at the former.
func scheduledBehindMuch(f *fixture) {
	f.many(1500, func(int, *taskqueue.Task) {})
	f.many(3, func(i int, t *taskqueue.Task) { t.ID, t.Delay = fmt.Sprint("later", i), time.Hour })
	page := f.page(taskqueue.ListRequest{State: taskqueue.StateScheduled, Max: 10})
	assert.Len(f, page.Tasks, 3, "in the first page")
	assert.Equal(f, 3, f.purge(taskqueue.StateScheduled))
	f.counts(1500, taskqueue.StateReady)
}

func statsAreExact(f *fixture) {
	f.many(2500, func(i int, t *taskqueue.Task) {
		if t.Priority = uint8(i % 3); i%5 == 0 {
			t.Delay = time.Hour
		}
	})
	want := func(scheduled, ready, running, retrying int64) {
		f.Helper()
		got := f.stats().States
		assert.Equal(f, []int64{scheduled, ready, running, retrying},
			[]int64{got[taskqueue.StateScheduled], got[taskqueue.StateReady], got[taskqueue.StateRunning], got[taskqueue.StateRetrying]})
	}
	want(500, 2000, 0, 0)
	runs := f.claim(100)
	want(500, 1900, 100, 0)
	f.failAll(runs, func(i int) time.Duration { return time.Duration(i%2) * time.Hour })
	want(500, 1950, 0, 50)
	later := f.page(taskqueue.ListRequest{State: taskqueue.StateScheduled, Max: 7})
	for _, t := range later.Tasks {
		f.act(t.ID, store.ActPromote)
	}
	want(493, 1957, 0, 50)
	f.act(runs[0].ID, store.ActDelete)
	want(493, 1956, 0, 50)
	assert.Equal(f, 1956, f.purge(taskqueue.StateReady))
	want(493, 0, 0, 50)
}

// The task that a page has ended with may be gone when the next is asked for, or have
// moved. All of these are due at the same time.
func pagesGoOnWithoutTheirEnd(f *fixture) {
	at := time.Now().Add(-time.Minute)
	for _, gone := range []func(id string){
		func(id string) { f.act(id, store.ActDelete) },
		func(id string) { f.act(id, store.ActCancel) },
	} {
		for _, reverse := range []bool{false, true} {
			f.many(9, func(_ int, t *taskqueue.Task) { t.RunAt = at })
			seen := map[string]int{}
			f.pages(taskqueue.ListRequest{State: taskqueue.StateReady, Max: 2, Reverse: reverse}, func(tasks []taskqueue.Info) {
				for _, t := range tasks {
					seen[t.ID]++
				}
				if n := len(tasks); n > 0 {
					gone(tasks[n-1].ID)
				}
			})
			assert.Len(f, seen, 9)
			for id, n := range seen {
				assert.Equal(f, 1, n, id)
			}
			for s := taskqueue.StateScheduled; s <= taskqueue.StateWaiting; s++ {
				if s != taskqueue.StateRunning {
					f.purge(s)
				}
			}
		}
	}
}

func extendedBetweenPages(f *fixture) {
	f.many(9, func(int, *taskqueue.Task) {})
	seen := map[string]bool{}
	f.claim(9)
	extended := 0
	f.pages(taskqueue.ListRequest{State: taskqueue.StateRunning, Max: 2}, func(tasks []taskqueue.Info) {
		for _, t := range tasks {
			seen[t.ID] = true
		}
		if n := len(tasks); n > 0 && extended < 3 {
			f.extend(time.Hour, ref(tasks[n-1]))
			extended++
		}
	})
	assert.Len(f, seen, 9)
}

func longTimes(f *fixture) {
	t := task("a")
	t.Retention, t.MaxFailures, t.MaxCrashes, t.Timeout = taskqueue.MaxRetention, 60000, 200, math.MaxInt64
	t.ExpiresAt = time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)
	f.add(t)
	i := f.get("a")
	assert.Equal(f, t.Retention, i.Retention)
	assert.Equal(f, t.MaxFailures, i.MaxFailures)
	assert.Equal(f, t.MaxCrashes, i.MaxCrashes)
	assert.Equal(f, t.Timeout, i.Timeout)
	assert.True(f, t.ExpiresAt.Equal(i.ExpiresAt))
	f.settle(f.one(), store.Snoozed, math.MaxInt64)
	assert.Greater(f, time.Until(f.get("a").DueAt), 40*365*24*time.Hour)
	old := task("old")
	old.RunAt = time.Date(1970, 1, 1, 0, 0, 0, 1, time.UTC)
	f.add(old)
	assert.Equal(f, "old", f.one().ID)
}

// The function that changes the settings is the caller's: it may use the store, and
// panic.
func configureCallsNobodyWhileLocked(f *fixture) {
	f.add(task("a"))
	err := f.q().Configure(ctx, func(s *taskqueue.Settings) {
		i, err := f.s.Get(ctx, queue, "a")
		require.NoError(f, err)
		s.Concurrency = len(i.ID)
		if s.MaxDead == 0 { // somebody else is faster
			f.configure(func(s *taskqueue.Settings) { s.MaxDead = 7 })
		}
	})
	require.NoError(f, err)
	assert.Equal(f, taskqueue.Settings{Concurrency: 1, MaxDead: 7}, f.stats().Settings)
	assert.PanicsWithValue(f, "mine", func() {
		_ = f.q().Configure(ctx, func(s *taskqueue.Settings) { s.Paused = true; panic("mine") })
	})
	did, err := f.s.Configure(ctx, queue, taskqueue.Settings{MaxDead: 7}, taskqueue.Settings{Paused: true})
	require.NoError(f, err)
	assert.False(f, did, "they are others")
	assert.False(f, f.stats().Settings.Paused)
	assert.Len(f, f.claim(1), 1)
}

func rateOffAndOn(f *fixture) {
	f.many(300, func(int, *taskqueue.Task) {})
	rate := func(r float64) {
		f.configure(func(s *taskqueue.Settings) { s.Rate, s.Burst = r, 3 })
	}
	rate(100)
	assert.Len(f, f.claim(10), 3)
	rate(0)
	assert.Len(f, f.claim(200), 200)
	rate(100)
	time.Sleep(100 * time.Millisecond)
	assert.Len(f, f.claim(10), 3, "what was claimed without a limit does not count")
}

func claimOfLargePayloads(f *fixture) {
	want := append([]string{"small"}, f.large()...)
	small := task("small")
	small.Priority = 7
	f.add(small)
	var ids []string
	for claims := 0; len(ids) < 11; claims++ {
		require.Less(f, claims, 5)
		got := f.asks(1000)
		bytes := 0
		for _, t := range got.Tasks {
			bytes += len(t.Payload)
			ids = append(ids, t.ID)
		}
		assert.LessOrEqual(f, bytes, taskqueue.MaxBatchBytes)
		if len(ids) < 11 {
			assert.False(f, got.NextDue.IsZero() || got.NextDue.After(got.Now), "there is more")
		}
	}
	assert.Equal(f, want, ids)

	largest := task("largest")
	largest.Payload = make([]byte, taskqueue.MaxBatchBytes)
	f.add(largest)
	assert.Equal(f, "largest", f.one().ID, "the first always fits")
}

// The notes of a handler since it was claimed may be more than what the claim was.
func claimRepeatedWithProgress(f *fixture) {
	f.many(6, func(int, *taskqueue.Task) {})
	r := store.ClaimRequest{Nonce: "1", Max: 6}
	got := f.claims(r)
	for _, t := range got.Tasks {
		_, err := f.s.Extend(ctx, store.ExtendRequest{Queue: queue, Worker: "w", Lease: time.Minute,
			Refs: []store.Ref{ref(t)}, Progress: map[string][]byte{t.ID: make([]byte, 1<<20)}})
		require.NoError(f, err)
	}
	got = f.claims(r)
	bytes := 0
	for _, t := range got.Tasks {
		bytes += len(t.Progress)
	}
	assert.Len(f, got.Tasks, 6, "all of them are still its own")
	assert.LessOrEqual(f, bytes, taskqueue.MaxBatchBytes)
}

func manyExpired(f *fixture) {
	f.many(1500, func(_ int, t *taskqueue.Task) { t.ExpiresAt = time.Now().Add(-time.Second) })
	f.add(task("z"))
	got := f.asks(10)
	assert.Empty(f, got.Tasks)
	assert.LessOrEqual(f, len(got.Dead), taskqueue.MaxBatch)
	assert.False(f, got.NextDue.IsZero() || got.NextDue.After(got.Now))
	for range 5 {
		if got = f.asks(10); len(got.Tasks) > 0 {
			break
		}
	}
	require.Len(f, got.Tasks, 1)
	assert.EqualValues(f, 1500, f.stats().Counts[taskqueue.CountExpired])
}
