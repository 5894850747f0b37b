package taskqueuetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

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
