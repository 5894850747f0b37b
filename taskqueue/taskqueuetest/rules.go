package taskqueuetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func oneState(f *fixture) {
	later := task("a")
	later.Delay = time.Hour
	f.add(later)
	f.in("a", taskqueue.StateScheduled)
	assert.True(f, f.act("a", store.ActPromote))
	f.in("a", taskqueue.StateReady)
	run := f.one()
	f.in("a", taskqueue.StateRunning)
	assert.Equal(f, store.Settled, f.settle(run, store.Failed, time.Hour))
	f.in("a", taskqueue.StateRetrying)
	f.act("a", store.ActPromote)
	f.in("a", taskqueue.StateReady)
	f.settle(f.one(), store.Buried, 0)
	f.in("a", taskqueue.StateDead)
	assert.True(f, f.act("a", store.ActRetry))
	f.in("a", taskqueue.StateReady)
	f.settle(f.one(), store.Succeeded, 0)
	f.in("a", taskqueue.StateDone)
	assert.True(f, f.act("a", store.ActDelete))
	f.gone("a", "deleted")
	for s, n := range f.stats().States {
		assert.Zero(f, n, "tasks left as %v", s)
	}
}

func tokensIncrease(f *fixture) {
	f.add(task("a"), task("b"), task("c"))
	last := int64(0)
	for range 5 {
		for _, run := range f.claim(2) {
			assert.Greater(f, run.Token, last)
			last = run.Token
			f.settle(run, store.Released, 0)
		}
	}
}

func tokenAfterDelete(f *fixture) {
	f.add(task("a"))
	old := f.one()
	f.settle(old, store.Succeeded, 0)
	require.True(f, f.act("a", store.ActDelete))
	f.add(task("a"))
	run := f.one()
	assert.Greater(f, run.Token, old.Token)
	assert.Equal(f, store.Stale, f.settle(old, store.Failed, 0))
	f.in("a", taskqueue.StateRunning)
}

func fenced(f *fixture) {
	f.add(task("a"))
	old := f.claimFor("old", 1, time.Millisecond)[0]
	f.lapse()
	run := f.one()
	require.Equal(f, "a", run.ID)
	r := f.extend(time.Minute, ref(old), ref(run), store.Ref{ID: "none", Token: 1})
	assert.Equal(f, []store.ExtendResult{store.Lost, store.Extended, store.Lost}, r)
	assert.Equal(f, store.Stale, f.settle(old, store.Succeeded, 0))
	f.in("a", taskqueue.StateRunning)
	assert.Equal(f, store.Settled, f.settle(run, store.Succeeded, 0))
}

func unique(id string) taskqueue.Task {
	t := task(id)
	t.UniqueKey = "k"
	return t
}

func uniqueKey(f *fixture) {
	duplicate := taskqueue.Result{Verdict: taskqueue.Duplicate, ID: "a"}
	r := f.add(unique("a"), unique("b"))
	assert.Equal(f, []taskqueue.Result{{Verdict: taskqueue.Added, ID: "a"}, duplicate}, r)
	run := f.one()
	assert.Equal(f, duplicate, f.add(unique("c"))[0], "while it runs")
	f.settle(run, store.Failed, 0)
	assert.Equal(f, duplicate, f.add(unique("c"))[0], "between runs")
	f.settle(f.one(), store.Succeeded, 0)
	assert.Equal(f, taskqueue.Added, f.add(unique("c"))[0].Verdict, "it has ended")

	assert.True(f, f.act("c", store.ActCancel))
	assert.Equal(f, taskqueue.Added, f.add(unique("d"))[0].Verdict, "it was cancelled")
	heldBy(f, "c", "d")
	f.settle(f.one(), store.Buried, 0)
	assert.True(f, f.act("c", store.ActRetry), "a dead letter holds no key")
	heldBy(f, "d", "c")
	assert.True(f, f.act("c", store.ActDelete))
	assert.Equal(f, taskqueue.Added, f.add(unique("e"))[0].Verdict, "it was deleted")
}

func uniqueUntilStart(f *fixture) {
	t := unique("a")
	t.Until = taskqueue.Start
	f.add(t)
	assert.Equal(f, taskqueue.Duplicate, f.add(unique("b"))[0].Verdict)
	run := f.one()
	assert.Equal(f, taskqueue.Added, f.add(unique("b"))[0].Verdict, "a has started")
	f.settle(run, store.Succeeded, 0)
	assert.Equal(f, taskqueue.Duplicate, f.add(unique("c"))[0].Verdict, "the end of a does not free the key of b")
}

func notBeforeItsTime(f *fixture) {
	a, b := task("a"), task("b")
	a.Delay = 100 * time.Millisecond
	b.Delay = time.Hour
	begin := time.Now()
	f.add(a, b)
	for {
		got := f.asks(10)
		if len(got.Tasks) > 0 {
			require.Len(f, got.Tasks, 1)
			assert.Equal(f, "a", got.Tasks[0].ID)
			assert.GreaterOrEqual(f, time.Since(begin), 100*time.Millisecond)
			assert.False(f, got.Now.Before(got.Tasks[0].DueAt), "by the clock of the store")
			return
		}
		assert.False(f, got.NextDue.IsZero())
		require.NoError(f, f.s.Wait(ctx, queue, got.Seen, time.Now().Add(min(got.NextDue.Sub(got.Now), time.Second))))
	}
}

func settledLate(f *fixture) {
	f.add(task("a"))
	run := f.claimFor("w", 1, time.Millisecond)[0]
	f.lapse()
	assert.Equal(f, store.Settled, f.settle(run, store.Succeeded, 0))
	f.in("a", taskqueue.StateDone)
	assert.Zero(f, f.get("a").Crashes)
}

func crashesApart(f *fixture) {
	f.add(task("a"))
	f.settle(f.one(), store.Failed, 0)
	for range 2 {
		f.claimFor("w", 1, time.Millisecond)
		f.lapse()
	}
	i := f.get("a")
	assert.Equal(f, 1, i.Failures)
	assert.Equal(f, 2, i.Crashes)
	assert.Equal(f, taskqueue.StateDead, i.State, "MaxCrashes is 2")

	f.add(task("b"))
	for range 3 {
		f.settle(f.one(), store.Failed, 0)
	}
	assert.Equal(f, taskqueue.StateDead, f.get("b").State, "MaxFailures is 3")
	assert.Equal(f, "why", f.get("b").LastError)
}

// Nobody else can tell of a task that a claim makes a dead letter or deletes.
func claimTells(f *fixture) {
	twice := task("crashes")
	twice.MaxCrashes = 1
	f.add(twice)
	require.Len(f, f.claimFor("dies", 1, time.Millisecond), 1)
	late := task("expires")
	late.ExpiresAt = time.Now().Add(time.Millisecond)
	f.add(late)
	var dead []string
	for range 2 { // see lapse
		time.Sleep(10 * time.Millisecond)
		got := f.asks(1)
		assert.Empty(f, got.Tasks)
		assert.Zero(f, got.Trimmed)
		dead = append(dead, got.Dead...)
	}
	assert.ElementsMatch(f, []string{"crashes", "expires"}, dead)
	f.configure(func(s *taskqueue.Settings) { s.MaxDead = 1 })
	got := f.asks(0)
	assert.Empty(f, got.Dead)
	assert.Equal(f, 1, got.Trimmed)
}

func unhandled(f *fixture) {
	f.add(task("a"))
	f.settle(f.one(), store.Unhandled, time.Hour)
	i := f.get("a")
	assert.Equal(f, taskqueue.StateScheduled, i.State)
	assert.Equal(f, "why", i.LastError)
	assert.Zero(f, i.Attempt+i.Failures)
	assert.Equal(f, 1, i.Releases)
	counts := f.stats().Counts
	assert.EqualValues(f, 1, counts[taskqueue.CountUnhandled])
	assert.EqualValues(f, 1, counts[taskqueue.CountReleased])
}

// heldBy checks that a Retry is refused, with the holder of the unique key named.
func heldBy(f *fixture, id, holder string) {
	f.Helper()
	did, err := f.s.Act(ctx, queue, id, store.ActRetry)
	var held *taskqueue.DuplicateError
	require.ErrorAs(f, err, &held)
	assert.False(f, did)
	assert.Equal(f, taskqueue.DuplicateError{UniqueKey: "k", Holder: holder}, *held)
}
