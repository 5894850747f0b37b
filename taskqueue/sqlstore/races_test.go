//go:build unix

package sqlstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

// A dead letter is retried, and the task that has its key ends between the two statements of that.
func TestATaskThatIsRetriedHoldsItsKey(t *testing.T) {
	all, _, _ := pgStores(t, 2)
	a, b := all[0], all[1]
	add(t, a, keyed("dead", "k"))
	got, err := claimAs(a, "w", "1/1", 1, time.Minute)
	require.NoError(t, err)
	settleAs(t, a, taskqueue.Buried, got.Tasks...)
	add(t, a, keyed("second", "k"))
	run, err := claimAs(a, "w", "1/2", 1, time.Minute)
	require.NoError(t, err)
	hook(a, onceAt("SELECT id FROM tq_unique", func() { settleAs(t, b, taskqueue.Succeeded, run.Tasks...) }))
	done, err := a.Act(t.Context(), "q", "dead", taskqueue.ActRetry)
	require.NoError(t, err)
	require.True(t, done)
	assert.Equal(t, []taskqueue.Result{{Verdict: taskqueue.Duplicate, ID: "dead"}}, add(t, b, keyed("third", "k")))
	sound(t, a)
}

// The first claim of a worker is slow, and is repeated with its nonce before it has ended.
func TestTheFirstClaimOfAWorkerIsRepeated(t *testing.T) {
	all, _, _ := pgStores(t, 1)
	s := all[0]
	for i := range 6 {
		add(t, s, newTask(fmt.Sprint(i)))
	}
	again := make(chan taskqueue.Claimed, 1)
	hook(s, onceAt("nextval", func() {
		go func() {
			got, err := claimAs(s, "w", "life/1", 3, time.Minute)
			assert.NoError(t, err)
			again <- got
		}()
		// Where both go on the repeat is done before the first; else it waits.
		sleep(context.Background(), 300*time.Millisecond)
	}))
	first, err := claimAs(s, "w", "life/1", 3, time.Minute)
	require.NoError(t, err)
	repeated := <-again
	require.Len(t, first.Tasks, 3)
	require.Len(t, repeated.Tasks, 3)
	for i := range first.Tasks {
		assert.Equal(t, first.Tasks[i].ID, repeated.Tasks[i].ID)
		assert.Equal(t, first.Tasks[i].Token, repeated.Tasks[i].Token)
	}
}
