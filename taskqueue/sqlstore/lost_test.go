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
	"github.com/ambit-go/ambit/taskqueue/store"
)

// asynq 1144, 420: ids without their payloads, on which every worker fails. Here somebody else
// has deleted one.
func TestATaskWithoutItsPayloadBecomesADeadLetter(t *testing.T) {
	s := openTemp(t)
	defer func() { require.NoError(t, s.Close()) }()
	_, err := s.Enqueue(t.Context(), "q", []taskqueue.Task{newTask("lost"), newTask("z")})
	require.NoError(t, err)
	require.NoError(t, s.db.transact(t.Context(), writes, func(t tx) error {
		return t.run(statement("DELETE FROM tq_payload WHERE id = $1", "lost"))
	}))
	got := claimed(t, s, 10)
	require.Len(t, got.Tasks, 1)
	assert.Equal(t, "z", got.Tasks[0].ID)
	assert.Equal(t, []string{"lost"}, got.Dead)
	i, err := s.Get(t.Context(), "q", "lost")
	require.NoError(t, err)
	assert.Equal(t, taskqueue.StateDead, i.State)
	assert.Contains(t, i.LastError, "lost its record")
	sound(t, s)
}

func newTask(id string) taskqueue.Task {
	return taskqueue.Task{ID: id, Type: "t", MaxFailures: 3, MaxCrashes: 3, Payload: []byte(id)}
}

func claimed(t testing.TB, s *Store, n int) taskqueue.Claimed {
	got, err := s.Claim(context.Background(), store.ClaimRequest{Queue: "q", Worker: "w", Nonce: fmt.Sprint(benchIDs.Add(1)), Max: n, Lease: time.Minute})
	require.NoError(t, err)
	return got
}

func sound(t testing.TB, s *Store) {
	faults, err := s.Audit(context.Background(), "q")
	require.NoError(t, err)
	assert.Empty(t, faults)
}
