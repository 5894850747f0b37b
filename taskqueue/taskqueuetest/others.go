package taskqueuetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// Faults of other queues, each with where it was reported.

// Taking a task and noting that were two steps there; a worker that died between them
// had it, and nobody knew.
func notLostWhenTaken(f *fixture) {
	f.add(task("a"), task("b"))
	require.Len(f, f.claimFor("dies", 2, time.Millisecond), 2) // its answer gets lost, and nobody asks again
	f.in("a", taskqueue.StateRunning)
	f.lapse()
	f.in("a", taskqueue.StateReady)
	assert.Len(f, f.claim(10), 2)
}

// The search for lost jobs wrote over one that had just been finished.
func reapingLeavesFinished(f *fixture) {
	f.add(task("a"))
	run := f.claimFor("w", 1, time.Millisecond)[0]
	assert.Equal(f, store.Settled, f.settle(run, store.Succeeded, 0))
	f.lapse()
	f.in("a", taskqueue.StateDone)
	assert.Zero(f, f.get("a").Crashes)
}

// A task deleted there left its id in a list, and every worker failed on it.
func nothingIsLeftOfWhatIsDeleted(f *fixture) {
	later := task("later")
	later.Delay = 5 * time.Millisecond
	retried := task("retried")
	f.add(retried)
	f.settle(f.one(), store.Failed, 5*time.Millisecond)
	f.add(later, task("now"), unique("unique"))
	for _, id := range []string{"later", "now", "unique", "retried"} {
		assert.True(f, f.act(id, store.ActDelete), id)
	}
	time.Sleep(10 * time.Millisecond)
	assert.Empty(f, f.claim(10))
	audit(f.T, f.s)
}

// The lock of the unique key was taken there before the id was found to be known, and
// nobody gave it back.
func knownIDTakesNoKey(f *fixture) {
	f.add(task("a"))
	assert.Equal(f, taskqueue.Exists, f.add(unique("a"))[0].Verdict)
	assert.Equal(f, taskqueue.Result{Verdict: taskqueue.Added, ID: "b"}, f.add(unique("b"))[0])
}

// Times were cut to seconds there.
func notAMicrosecondEarly(f *fixture) {
	want := map[string]time.Time{}
	at := time.Now().Add(20 * time.Millisecond)
	for i := range 20 {
		t := task(fmt.Sprint(i))
		t.RunAt = at.Add(time.Duration(i) * 333333 * time.Nanosecond)
		want[t.ID] = t.RunAt
		f.add(t)
	}
	for len(want) > 0 {
		got := f.asks(10)
		for _, run := range got.Tasks {
			assert.False(f, got.Now.Before(want[run.ID]), "%s was to run at %v, it was handed out at %v", run.ID, want[run.ID], got.Now)
			delete(want, run.ID)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// Every delayed job woke every worker there. A store that has begun to listen to others may wake those who wait because
// of that, for a while.
func onlyTheNextWakes(f *fixture) {
	next := task("next")
	next.Delay = time.Hour
	f.add(next)
	for try := 0; ; try++ {
		told := f.quiet()
		for i := range 5 {
			later := task(fmt.Sprint("later", try, " ", i))
			later.Delay = 2 * time.Hour
			f.add(later)
		}
		begin := time.Now()
		until := begin.Add(100 * time.Millisecond)
		require.NoError(f, f.s.Wait(ctx, queue, told.Seen, until))
		if !time.Now().Before(until) {
			return
		}
		require.Less(f, try, 100, "woken each time, now after %v", time.Since(begin))
	}
}

// Dead letters were deleted there without a word.
func deadLettersAreTrimmedAloud(f *fixture) {
	bury := func(n int) {
		for range n {
			f.n++
			f.add(task(fmt.Sprint("dead", f.n)))
			f.settle(f.one(), store.Buried, 0)
		}
	}
	bury(20)
	f.claim(0)
	f.counts(20, taskqueue.StateDead) // nobody has asked for fewer
	assert.Zero(f, f.stats().Counts[taskqueue.CountTrimmed])
	f.configure(func(s *taskqueue.Settings) { s.MaxDead = 5 })
	f.claim(0)
	f.counts(5, taskqueue.StateDead)
	assert.EqualValues(f, 15, f.stats().Counts[taskqueue.CountTrimmed])
}

// A task that was told to stop was run again there.
func cancelledIsNotRetried(f *fixture) {
	f.add(task("failed"), task("crashed"))
	failed := f.claim(1)[0]
	crashed := f.claimFor("dies", 1, time.Millisecond)[0]
	f.act(failed.ID, store.ActCancel)
	f.act(crashed.ID, store.ActCancel)
	f.settle(failed, store.Failed, 0)
	f.lapse()
	f.in(failed.ID, taskqueue.StateCancelled)
	f.in(crashed.ID, taskqueue.StateCancelled)
	assert.Empty(f, f.claim(10))
}

// Faults that random programs and readers have found in these stores.

func outcomeTwiceInOneCall(f *fixture) {
	f.add(task("a"))
	run := f.one()
	o := store.Outcome{Ref: ref(run), Kind: store.Failed, Error: "why"}
	assert.Equal(f, []store.SettleResult{store.Settled, store.Settled}, f.settleAll(o, o))
	assert.Equal(f, 1, f.get("a").Failures)
}

// A task that a crash has ended, and whose worker then says that it has failed only,
// waits again with its unique key, or not at all.
func revivedHasItsKey(f *fixture) {
	for name, taken := range map[string]bool{"free": false, "taken": true} {
		t := unique(name)
		t.UniqueKey, t.MaxCrashes = name, 1
		f.add(t)
		run := f.claimFor("w", 1, time.Millisecond)[0]
		f.lapse()
		f.in(name, taskqueue.StateDead)
		if taken {
			t.ID = "other"
			f.add(t)
		}
		assert.Equal(f, store.Settled, f.settle(run, store.Failed, 0))
		t.ID = "third"
		r := f.add(t)[0]
		assert.Equal(f, taskqueue.Duplicate, r.Verdict, name)
		if taken {
			assert.Equal(f, "other", r.ID)
			f.in(name, taskqueue.StateDead)
			f.act("other", store.ActDelete)
		} else {
			assert.Equal(f, name, r.ID)
			f.in(name, taskqueue.StateReady)
			f.settle(f.one(), store.Succeeded, 0)
		}
	}
}

// An outage longer than a lease: nobody could extend. Every worker gets a lease's time
// from its end. A worker that is really gone costs one lease more, once.
func outageIsNoCrash(f *fixture) {
	f.add(task("a"))
	lease := 300 * time.Millisecond
	run := f.claimFor("w", 1, lease)[0]
	time.Sleep(2 * lease)
	assert.Empty(f, f.claimFor("other", 1, lease), "the first call after the outage")
	assert.Zero(f, f.get("a").Crashes)
	assert.Equal(f, []store.ExtendResult{store.Extended}, f.extend(lease, ref(run)))
	for range 2 { // nobody calls more often than this
		time.Sleep(lease + lease/10)
		f.claim(0)
	}
	assert.Equal(f, 1, f.get("a").Crashes)
}

// ExpiresAt is about the first start.
func expiryIsForWhatHasNotStarted(f *fixture) {
	run := f.startedInTime("a")
	f.settle(run, store.Failed, 0)
	time.Sleep(time.Until(run.ExpiresAt) + time.Millisecond)
	assert.Equal(f, run.ID, f.one().ID)
}
