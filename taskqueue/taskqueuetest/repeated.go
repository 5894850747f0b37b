package taskqueuetest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func enqueueRepeated(f *fixture) {
	f.add(task("a"))
	assert.Equal(f, taskqueue.Result{Verdict: taskqueue.Exists, ID: "a"}, f.add(task("a"))[0])
	f.settle(f.one(), store.Succeeded, 0)
	assert.Equal(f, taskqueue.Exists, f.add(task("a"))[0].Verdict, "ended ids are known for a while")
	assert.Empty(f, f.claim(1))
}

func claimRepeated(f *fixture) {
	f.add(task("a"), task("b"), task("c"))
	r := store.ClaimRequest{Nonce: "1", Max: 2}
	first := f.claims(r)
	require.Len(f, first.Tasks, 2)
	f.settle(first.Tasks[0], store.Succeeded, 0)
	again := f.claims(r)
	require.Len(f, again.Tasks, 1, "what is settled is left out, and nothing new is taken")
	assert.Equal(f, first.Tasks[1].ID, again.Tasks[0].ID)
	assert.Equal(f, first.Tasks[1].Token, again.Tasks[0].Token)
	r.Nonce = "2"
	next := f.claims(r)
	require.Len(f, next.Tasks, 1)
	assert.Equal(f, "c", next.Tasks[0].ID)
}

// A claim whose answer did not come is repeated, and others follow. The first may come after
// them: what it got would be held for nobody.
func claimLate(f *fixture) {
	f.add(task("a"), task("b"))
	claim := func(nonce string) []taskqueue.Info { return f.claims(store.ClaimRequest{Nonce: nonce, Max: 1}).Tasks }
	require.Len(f, claim("life/9"), 1)
	assert.Empty(f, claim("life/8"))
	assert.Empty(f, claim("life/08"), "by the number")
	require.Len(f, claim("life/10"), 1, "nothing is held for nobody")
	f.add(task("c"), task("d"), task("e"))
	assert.Len(f, claim("another/1"), 1, "of a worker that has the name again")
	assert.Len(f, claim("plain"), 1)
	assert.Len(f, claim("another/1"), 1, "the last has no number")
}

func settleRepeated(f *fixture) {
	f.add(task("a"))
	run := f.one()
	assert.Equal(f, store.Settled, f.settle(run, store.Failed, time.Hour))
	assert.Equal(f, store.Settled, f.settle(run, store.Failed, time.Hour))
	assert.Equal(f, 1, f.get("a").Failures)
	f.act("a", store.ActPromote)
	next := f.one()
	assert.Equal(f, store.Stale, f.settle(run, store.Failed, 0))
	f.settle(next, store.Succeeded, 0)
	assert.Equal(f, store.Settled, f.settle(next, store.Succeeded, 0))
	gone := taskqueue.Info{Task: task("never")}
	assert.Equal(f, store.Gone, f.settle(gone, store.Succeeded, 0))
}

func tickOnce(f *fixture) {
	at := time.Now().Truncate(time.Second)
	tick := func(id string, at time.Time) bool {
		return f.tick(taskqueue.Tick{Schedule: "@hourly", At: at, Task: task(id)})
	}
	assert.True(f, tick("1", at))
	assert.False(f, tick("2", at))
	assert.False(f, tick("3", at.Add(-time.Second)))
	assert.True(f, tick("4", at.Add(time.Second)))
	assert.Len(f, f.claim(10), 2)
	assert.True(f, f.periodic().Last.Equal(at.Add(time.Second)))
}

// newestSchedule has the schedule of a deploy be in force from its start on, and an older one
// refused.
func newestSchedule(f *fixture) {
	at := time.Now().Truncate(time.Second).Add(-3 * time.Hour)
	tick := func(id, schedule string, defined, at time.Time) bool {
		return f.tick(taskqueue.Tick{Schedule: schedule, Defined: defined, At: at, Task: task(id)})
	}
	old, deploy := at.Add(-time.Hour), at.Add(-time.Minute)
	assert.True(f, tick("", "@hourly", old, time.Time{}))
	assert.Equal(f, taskqueue.Periodic{Name: "report", Schedule: "@hourly", Defined: old.UTC()}, f.periodic())
	assert.True(f, tick("1", "@hourly", old, at))
	assert.True(f, tick("", "@daily", deploy, time.Time{}))
	want := taskqueue.Periodic{Name: "report", Schedule: "@daily", Defined: deploy.UTC(), Last: at.UTC()}
	assert.Equal(f, want, f.periodic())
	assert.False(f, tick("2", "@hourly", old, at.Add(time.Hour)), "the old program is refused")
	assert.False(f, tick("", "@hourly", old, time.Time{}))
	assert.False(f, tick("", "@weekly", deploy, time.Time{}), "as new, and later")
	assert.False(f, tick("3", "@daily", deploy, at), "that tick was added by the old schedule")
	assert.True(f, tick("4", "@daily", old, at.Add(time.Hour)), "the same schedule of an older program")
	assert.Equal(f, deploy.UTC(), f.periodic().Defined)
	assert.Len(f, f.claim(10), 2)
}

// Two definitions of one name would fire at the times of both.
func firstSchedule(f *fixture) {
	at := time.Now().Truncate(time.Second).Add(-3 * time.Hour) // stores may refuse ticks that are far ahead
	tick := func(id, schedule string, at time.Time) bool {
		return f.tick(taskqueue.Tick{Schedule: schedule, At: at, Task: task(id)})
	}
	assert.True(f, tick("1", "@hourly", at))
	assert.False(f, tick("2", "@daily", at.Add(time.Hour)))
	assert.True(f, tick("3", "@hourly", at.Add(2*time.Hour)), "what was refused is not noted")
	for _, known := range []bool{true, false} {
		did, err := f.s.Unschedule(ctx, queue, "report")
		require.NoError(f, err)
		assert.Equal(f, known, did)
	}
	assert.True(f, tick("4", "@daily", at), "it was forgotten")
	assert.Equal(f, "@daily", f.periodic().Schedule)
}
