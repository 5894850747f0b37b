package taskqueuetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func keyed(id, key string) taskqueue.Task {
	t := task(id)
	t.LimitKey = key
	return t
}

func (f *fixture) limit(l taskqueue.Limit) {
	f.Helper()
	require.NoError(f, f.s.SetLimit(ctx, queue, l))
}

// ids are those of tasks, sorted.
func (f *fixture) ids(tasks []taskqueue.Info) string {
	var all []string
	for _, t := range tasks {
		all = append(all, t.ID)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func limitByKey(f *fixture) {
	f.limit(taskqueue.Limit{Key: "tenant-*", Concurrency: 1})
	f.add(keyed("a", "tenant-1"), keyed("b", "tenant-1"), keyed("c", "tenant-2"), keyed("d", "other"), task("e"))
	runs := f.claim(10)
	assert.Equal(f, "a c d e", f.ids(runs))
	f.in("b", taskqueue.StateReady)
	assert.True(f, f.get("b").Limited)
	assert.Equal(f, "tenant-1", f.get("b").LimitKey)
	stats := f.stats()
	assert.EqualValues(f, 1, stats.Limited)
	assert.Equal(f, []taskqueue.Limit{{Key: "tenant-*", Concurrency: 1}}, stats.Limits)
	assert.Empty(f, f.claim(10))
	f.settle(f.get("c"), store.Succeeded, 0)
	assert.Empty(f, f.claim(10), "it was another key")
	f.settle(f.get("a"), store.Failed, time.Hour)
	assert.Equal(f, "b", f.ids(f.claim(10)))
	assert.False(f, f.get("b").Limited)
	assert.Zero(f, f.stats().Limited)
}

func limitMostSpecific(f *fixture) {
	for _, l := range []taskqueue.Limit{
		{Type: "t", Concurrency: 1}, {Key: "a*", Concurrency: 2}, {Key: "ab*", Concurrency: 3}, {Key: "abc", Concurrency: 4},
	} {
		f.limit(l)
	}
	for _, key := range []string{"", "b", "ax", "abx", "abc"} {
		for i := range 6 {
			f.add(keyed(fmt.Sprint(key, "/", i), key))
		}
	}
	got := map[string]int{}
	for _, t := range f.claim(100) {
		got[t.LimitKey]++
	}
	assert.Equal(f, map[string]int{"": 1, "ax": 2, "abx": 3, "abc": 4}, got, "b is under the limit of its type")
}

// A claim looks at a thousand tasks at most: so many claims may come before the one that gets what
// stands behind 10,000, and no more.
func limitBehindMany(f *fixture) {
	const many = 10_000
	f.limit(taskqueue.Limit{Key: "full", Concurrency: 1})
	at := time.Now().Add(-time.Hour)
	f.add(keyed("runs", "full"))
	first := f.claimFor("w", 1, time.Hour)[0]
	f.many(many, func(i int, t *taskqueue.Task) {
		t.LimitKey, t.RunAt = "full", at.Add(time.Duration(i)*time.Microsecond)
	})
	free := keyed("free", "free")
	free.RunAt = at.Add(time.Minute)
	f.add(free)
	claims, got := 1, f.claim(1)
	for ; len(got) == 0; got = f.claim(1) {
		require.LessOrEqual(f, claims, many/taskqueue.MaxBatch+1)
		claims++
	}
	assert.Equal(f, "free", got[0].ID)
	assert.EqualValues(f, many, f.stats().Limited)
	f.counts(many, taskqueue.StateReady)
	assert.Empty(f, f.claim(1))
	f.settle(first, store.Succeeded, 0)
	assert.Equal(f, "00000", f.one().ID)
	assert.EqualValues(f, many-1, f.stats().Limited, "one comes back for one place")
}

func limitKeepsPlaces(f *fixture) {
	f.limit(taskqueue.Limit{Key: "k", Concurrency: 1})
	f.add(keyed("runs", "k"))
	run := f.one()
	at := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	add := func(id, key string, priority uint8, due time.Time) {
		t := keyed(id, key)
		t.Priority, t.RunAt = priority, due
		f.add(t)
	}
	add("d", "k", 0, at)
	add("c", "k", 3, at.Add(time.Second))
	add("b", "k", 3, at)
	add("a", "k", 7, at.Add(time.Minute))
	assert.Empty(f, f.claim(10))
	add("between", "", 3, at.Add(time.Microsecond))
	for _, want := range []string{"a", "b", "between", "c", "d"} {
		if want != "between" {
			f.settle(run, store.Succeeded, 0)
		}
		got := f.one()
		assert.Equal(f, want, got.ID)
		if want != "between" {
			run = got
		}
	}
	assert.WithinDuration(f, at, f.get("d").DueAt, 0)
	f.settle(run, store.Failed, 0)
	add("e", "k", 7, at)
	e := f.one()
	assert.Equal(f, "e", e.ID)
	assert.Empty(f, f.claim(1))
	assert.True(f, f.get("d").Limited)
	f.settle(e, store.Succeeded, 0)
	d := f.one()
	assert.Equal(f, "d", d.ID)
	assert.Equal(f, 1, d.Failures)
	f.settle(d, store.Failed, time.Hour)
	f.in("d", taskqueue.StateRetrying)
}

func limitAfterACrash(f *fixture) {
	f.limit(taskqueue.Limit{Type: "t", Concurrency: 2})
	f.add(task("a"), task("b"), task("c"))
	assert.Len(f, f.claimFor("dies", 10, time.Millisecond), 2)
	f.lapse()
	runs := f.claim(10)
	require.Len(f, runs, 2)
	assert.Empty(f, f.claim(10))
	f.settle(runs[0], store.Succeeded, 0)
	f.settle(runs[1], store.Succeeded, 0)
	assert.Len(f, f.claim(10), 1)
}

func limitChanged(f *fixture) {
	f.limit(taskqueue.Limit{Key: "k*", Concurrency: 1})
	for i := range 9 {
		f.add(keyed(fmt.Sprint(i), "k1"))
	}
	assert.Len(f, f.claim(10), 1)
	f.limit(taskqueue.Limit{Key: "k1", Concurrency: 3})
	assert.Len(f, f.claim(10), 2, "one runs already, under the same key")
	f.limit(taskqueue.Limit{Key: "k1"})
	assert.Empty(f, f.claim(10), "that of all such keys is left")
	f.limit(taskqueue.Limit{Type: "t", Concurrency: 1})
	assert.Empty(f, f.claim(10))
	f.limit(taskqueue.Limit{Key: "k*"})
	assert.Len(f, f.claim(10), 1, "no run is under the limit of the type")
	assert.Empty(f, f.claim(10))
	f.limit(taskqueue.Limit{Type: "t"})
	assert.Len(f, f.claim(10), 5)
	assert.Empty(f, f.stats().Limits)
	assert.Zero(f, f.stats().Limited)
	f.limit(taskqueue.Limit{Type: "none"}) // there is none
}

func limitByRate(f *fixture) {
	f.limit(taskqueue.Limit{Key: "k", Rate: 10, Burst: 2})
	for i := range 4 {
		f.add(keyed(fmt.Sprint(i), "k"))
	}
	begin := time.Now()
	assert.Equal(f, "0 1", f.ids(f.claim(10)))
	got := f.claims(store.ClaimRequest{Worker: "v", Max: 10, Lease: time.Hour})
	if len(got.Tasks) == 0 { // the machine was not that slow
		assert.LessOrEqual(f, got.NextDue.Sub(got.Now), 101*time.Millisecond, "the worker is told when the rate allows the next")
		assert.True(f, got.NextDue.After(got.Now))
	}
	n := 2 + len(got.Tasks)
	for n < 4 {
		n += len(f.claim(10))
		time.Sleep(time.Millisecond)
	}
	assert.GreaterOrEqual(f, time.Since(begin), 190*time.Millisecond)
}

func limitActs(f *fixture) {
	f.limit(taskqueue.Limit{Key: "k", Concurrency: 1})
	late := keyed("late", "k")
	late.ExpiresAt = time.Now().Add(50 * time.Millisecond)
	late.Priority = 1
	f.add(keyed("a", "k"))
	run := f.one()
	one := keyed("c", "k")
	one.UniqueKey = "unique"
	f.add(keyed("b", "k"), one, keyed("d", "k"), late)
	assert.Empty(f, f.claim(10))
	kept := int64(4)
	if f.get("late").State == taskqueue.StateDead { // the machine was that slow
		kept--
	}
	assert.Equal(f, kept, f.stats().Limited)
	assert.False(f, f.act("b", store.ActPromote))
	assert.False(f, f.act("b", store.ActRetry))
	assert.True(f, f.act("b", store.ActDelete))
	assert.True(f, f.act("c", store.ActCancel))
	f.in("c", taskqueue.StateCancelled)
	assert.True(f, f.act("c", store.ActRetry))
	assert.Empty(f, f.claim(10))
	assert.Equal(f, kept-1, f.stats().Limited)
	time.Sleep(time.Until(late.ExpiresAt) + 10*time.Millisecond)
	f.settle(run, store.Succeeded, 0)
	var got []taskqueue.Info
	for range 3 { // the first is there only to be found expired
		got = append(got, f.claim(10)...)
	}
	assert.Equal(f, "d", f.ids(got))
	f.in("late", taskqueue.StateDead)
}

// A task that came back for a place, and is cancelled before it runs, leaves it to the next.
func limitLeavesNobody(f *fixture) {
	f.limit(taskqueue.Limit{Key: "k", Concurrency: 1})
	for i := range 5 {
		f.add(keyed(fmt.Sprint(i), "k"))
	}
	run := f.one()
	assert.Empty(f, f.claim(1))
	f.settle(run, store.Succeeded, 0)
	for _, gone := range []string{"1", "2", "3"} {
		f.claim(0)
		assert.True(f, f.act(gone, store.ActCancel))
	}
	assert.Equal(f, "4", f.one().ID)
}

func limitPages(f *fixture) {
	f.limit(taskqueue.Limit{Key: "*", Concurrency: 1})
	f.many(30, func(i int, t *taskqueue.Task) {
		t.LimitKey, t.Priority = fmt.Sprint("key", i%3), uint8(i%2)
	})
	assert.Len(f, f.claim(100), 3)
	f.add(task("free"))
	assert.EqualValues(f, 27, f.stats().Limited)
	for _, reverse := range []bool{false, true} {
		seen := map[string]int{}
		f.pages(taskqueue.ListRequest{State: taskqueue.StateReady, Max: 4, Reverse: reverse}, func(tasks []taskqueue.Info) {
			for _, t := range tasks {
				assert.Equal(f, t.ID != "free", t.Limited)
				seen[t.ID]++
			}
		})
		assert.Len(f, seen, 28)
		for id, n := range seen {
			assert.Equal(f, 1, n, id)
		}
	}
	page := f.page(taskqueue.ListRequest{State: taskqueue.StateScheduled})
	assert.Empty(f, page.Tasks)
	assert.Equal(f, 28, f.purge(taskqueue.StateReady))
	assert.Zero(f, f.stats().Limited)
}
