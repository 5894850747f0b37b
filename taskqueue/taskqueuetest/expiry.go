package taskqueuetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A human says that it is to run; so does a handler that has snoozed.
func retriedDoesNotExpire(f *fixture) {
	t := task("a")
	t.ExpiresAt = time.Now().Add(-time.Second)
	f.add(t)
	require.Empty(f, f.claim(1))
	f.in("a", taskqueue.StateDead)
	assert.True(f, f.act("a", store.ActRetry))
	run := f.one()
	f.settle(run, store.Succeeded, 0)

	run = f.startedInTime("b")
	f.settle(run, store.Snoozed, 0)
	time.Sleep(time.Until(run.ExpiresAt) + time.Millisecond)
	assert.Equal(f, run.ID, f.one().ID, "it was started in time")

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
