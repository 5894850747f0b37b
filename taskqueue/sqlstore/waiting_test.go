//go:build unix

package sqlstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

// A transaction of a user has added a task with a key, and goes on. Enqueues of that key wait for it,
// as long as their callers like, and those of no key, which come with them, do not.
func TestOnlyEnqueuesOfTheKeyWaitForATransactionOfAUser(t *testing.T) {
	all, pool, _ := pgStores(t, 1)
	s := all[0]
	add(t, s, newTask("before"))
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = s.EnqueueTx(t.Context(), tx, "q", []taskqueue.Task{keyed("user", "k")})
	require.NoError(t, err)
	var waiting, others sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	for round := range 5 {
		for i := range 3 {
			waiting.Go(func() {
				r, err := s.Enqueue(ctx, "q", []taskqueue.Task{keyed(fmt.Sprintf("waits %d-%d", round, i), "k")})
				assert.NoError(t, err)
				assert.Equal(t, []taskqueue.Result{{Verdict: taskqueue.Duplicate, ID: "user"}}, r)
			})
			others.Go(func() {
				_, err := s.Enqueue(ctx, "q", []taskqueue.Task{newTask(fmt.Sprintf("other %d-%d", round, i))})
				assert.NoError(t, err)
			})
		}
		others.Wait()
	}
	left, leave := context.WithCancelCause(t.Context())
	leave(assert.AnError)
	c := &enqueueCall{tasks: []taskqueue.Task{keyed("left", "k")}}
	s.enqueues.carryOutAlone(left, "q", c)
	require.ErrorIs(t, c.err, assert.AnError)
	require.NotErrorIs(t, c.err, taskqueue.ErrUnknown)
	require.NoError(t, tx.Commit(t.Context()))
	waiting.Wait()
	sound(t, s)
}
