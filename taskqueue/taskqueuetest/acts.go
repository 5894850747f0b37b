package taskqueuetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func order(f *fixture) {
	at := time.Now().Add(-time.Hour)
	add := func(id string, priority uint8, due time.Time) {
		t := task(id)
		t.Priority, t.RunAt = priority, due
		f.add(t)
	}
	add("e", 0, at)
	add("c", 3, at.Add(time.Second))
	add("d", 3, at.Add(time.Second))
	add("b", 3, at)
	add("a", 7, at.Add(time.Minute))
	var got string
	for range 5 {
		got += f.one().ID
	}
	assert.Equal(f, "abcde", got)
}

func paused(f *fixture) {
	f.add(task("a"))
	f.configure(func(s *taskqueue.Settings) { s.Paused = true })
	assert.Empty(f, f.claim(1))
	f.configure(func(s *taskqueue.Settings) { s.Paused = false })
	assert.Len(f, f.claim(1), 1)
}

func concurrency(f *fixture) {
	f.configure(func(s *taskqueue.Settings) { s.Concurrency = 2 })
	f.add(task("a"), task("b"), task("c"))
	runs := f.claim(10)
	require.Len(f, runs, 2)
	assert.Empty(f, f.claim(10))
	f.settle(runs[0], store.Succeeded, 0)
	assert.Len(f, f.claim(10), 1)
}

func rate(f *fixture) {
	f.configure(func(s *taskqueue.Settings) { s.Rate, s.Burst = 10, 2 })
	f.add(task("a"), task("b"), task("c"), task("d"))
	begin := time.Now()
	assert.Len(f, f.claim(10), 2)
	n := 2
	for n < 4 {
		n += len(f.claim(10))
		time.Sleep(time.Millisecond)
	}
	assert.GreaterOrEqual(f, time.Since(begin), 190*time.Millisecond)
}

func cancel(f *fixture) {
	f.add(task("a"), task("b"), task("c"))
	assert.True(f, f.act("a", store.ActCancel))
	f.in("a", taskqueue.StateCancelled)
	assert.False(f, f.act("a", store.ActCancel))
	for id, kind := range map[string]store.OutcomeKind{"b": store.Failed, "c": store.Succeeded} {
		run := f.one()
		for run.ID != id {
			f.settle(run, store.Released, 0)
			run = f.one()
		}
		assert.True(f, f.act(id, store.ActCancel))
		f.in(id, taskqueue.StateRunning)
		assert.Equal(f, []store.ExtendResult{store.CancelRequested}, f.extend(time.Minute, ref(run)))
		want, answer := taskqueue.StateCancelled, store.Overruled
		if kind == store.Succeeded {
			want, answer = taskqueue.StateDone, store.Settled
		}
		assert.Equal(f, answer, f.settle(run, kind, 0))
		assert.Equal(f, answer, f.settle(run, kind, 0), "again")
		f.in(id, want)
	}
}

func retryDead(f *fixture) {
	f.add(task("a"))
	f.settle(f.one(), store.Buried, 0)
	assert.Empty(f, f.claim(1))
	assert.True(f, f.act("a", store.ActRetry))
	run := f.one()
	assert.Zero(f, run.Failures)
	f.settle(run, store.Succeeded, 0)
	assert.False(f, f.act("a", store.ActRetry))
}

func released(f *fixture) {
	f.add(task("a"))
	for range 10 {
		run := f.one()
		assert.Equal(f, 1, run.Attempt)
		f.settle(run, store.Released, 0)
	}
	i := f.get("a")
	assert.Equal(f, 10, i.Releases)
	assert.Zero(f, i.Failures)
}

func expired(f *fixture) {
	t := task("a")
	t.ExpiresAt = time.Now().Add(-time.Second)
	f.add(t, task("b"))
	assert.Equal(f, "b", f.one().ID)
	f.in("a", taskqueue.StateDead)
	assert.Contains(f, f.get("a").LastError, "expired")
}

func pages(f *fixture) {
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("%02d", i)
		want = append(want, id)
		f.add(task(id))
	}
	got, _ := f.list(taskqueue.ListRequest{State: taskqueue.StateReady, Max: 10})
	assert.Equal(f, want, got)
	assert.Equal(f, 25, f.purge(taskqueue.StateReady))
	_, err := f.s.List(ctx, queue, taskqueue.ListRequest{State: taskqueue.StateReady, Cursor: "no hex"})
	f.invalid(err)
}

func names(f *fixture) {
	for _, id := range []string{"a:b", "{a}", "ä\n", "a b", "\u2028%s"} {
		t := task(id)
		t.UniqueKey = id
		f.add(t)
		run := f.one()
		assert.Equal(f, id, run.ID)
		assert.Equal(f, store.Settled, f.settle(run, store.Succeeded, 0))
	}
}

func apart(f *fixture) {
	f.add(unique("a"))
	second := &fixture{f.T, f.s, queue + "2", 0}
	assert.Equal(f, taskqueue.Added, second.add(unique("a"))[0].Verdict)
	assert.Len(f, f.claim(10), 1)
	all, err := f.s.Queues(ctx)
	require.NoError(f, err)
	assert.Equal(f, []string{queue, queue + "2"}, all)
	for _, bad := range []string{"", "a\x00b", string(make([]byte, 300))} {
		_, err := f.s.Enqueue(ctx, bad, nil)
		f.invalid(err)
	}
}

// A human says that it is to run, or a handler has begun it.
func retriedDoesNotExpire(f *fixture) {
	t := task("a")
	t.ExpiresAt = time.Now().Add(-time.Second)
	f.add(t)
	require.Empty(f, f.claim(1))
	f.in("a", taskqueue.StateDead)
	assert.True(f, f.act("a", store.ActRetry))
	run := f.one()
	f.settle(run, store.Succeeded, 0)

	for _, kind := range []store.OutcomeKind{store.Released, store.Snoozed, store.Stopped} {
		run = f.startedInTime(fmt.Sprint("b", kind))
		f.settle(run, kind, 0)
		time.Sleep(time.Until(run.ExpiresAt) + time.Millisecond)
		again := f.one()
		assert.Equal(f, run.ID, again.ID, "it was started in time")
		f.settle(again, store.Succeeded, 0)
	}

	run = f.startedInTime("c")
	f.settle(run, store.Unhandled, 0)
	time.Sleep(time.Until(run.ExpiresAt) + time.Millisecond)
	assert.Empty(f, f.claim(1), "nobody has started it")
	f.in(run.ID, taskqueue.StateDead)
}

// startedInTime adds a task that expires soon and claims it before that: on a slow
// machine it tries with longer and longer times, and other ids.
func (f *fixture) startedInTime(id string) taskqueue.Info {
	f.Helper()
	for soon := 10 * time.Millisecond; ; soon *= 2 {
		t := task(fmt.Sprint(id, " ", soon))
		t.ExpiresAt = time.Now().Add(soon)
		f.add(t)
		if got := f.claim(1); len(got) > 0 {
			return got[0]
		}
	}
}

// filtered makes tasks of two types: 250 that are dead for two reasons, and some in other states.
func (f *fixture) filtered() *taskqueue.Queue {
	f.Helper()
	var tasks []taskqueue.Task
	for i := range 250 {
		t := task(fmt.Sprintf("dead%03d", i))
		t.MaxFailures = 1
		if i%2 == 1 {
			t.Type = "other"
		}
		tasks = append(tasks, t)
	}
	f.add(tasks...)
	for _, t := range f.claim(1000) {
		f.settle(t, store.Buried, 0)
	}
	later, held := task("later"), task("held")
	later.Delay, held.UniqueKey = time.Hour, "k"
	f.add(later, held)
	return f.q()
}

func allOfAFilter(f *fixture) {
	q := f.filtered()
	n, err := q.RetryAll(ctx, taskqueue.Filter{Type: "other", Error: "why"})
	require.NoError(f, err)
	assert.Equal(f, 125, n)
	f.in("dead000", taskqueue.StateDead)
	f.in("dead001", taskqueue.StateReady)
	for _, none := range []taskqueue.Filter{{Error: "not so"}, {Type: "nobody"}, {Before: time.Unix(1, 0)}, {State: taskqueue.StateCancelled}} {
		n, err = q.RetryAll(ctx, none)
		require.NoError(f, err)
		assert.Zero(f, n, "%+v", none)
	}
	n, err = q.CancelAll(ctx, taskqueue.Filter{State: taskqueue.StateScheduled})
	require.NoError(f, err)
	assert.Equal(f, 1, n)
	f.in("later", taskqueue.StateCancelled)
	f.in("held", taskqueue.StateReady)
	n, err = q.DeleteAll(ctx, taskqueue.Filter{State: taskqueue.StateDead})
	require.NoError(f, err)
	assert.Equal(f, 125, n)
	n, err = q.DeleteAll(ctx, taskqueue.Filter{})
	require.NoError(f, err)
	assert.Equal(f, 127, n)
	_, err = q.RetryAll(ctx, taskqueue.Filter{State: taskqueue.StateReady})
	f.invalid(err)
}

// One whose key somebody else has is left, and the others are retried.
func retryAllLeavesHeldKeys(f *fixture) {
	q := f.q()
	first, other := task("a"), task("b")
	first.UniqueKey = "k"
	f.add(first, other)
	for _, t := range f.claim(10) {
		f.settle(t, store.Buried, 0)
	}
	second := task("c")
	second.UniqueKey = "k"
	f.add(second)
	n, err := q.RetryAll(ctx, taskqueue.Filter{})
	require.NoError(f, err)
	assert.Equal(f, 1, n)
	f.in("a", taskqueue.StateDead)
	f.in("b", taskqueue.StateReady)
}
