package taskqueue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/sums"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// The clock of a bubble shows no time for a run that does not wait.
func TestRunsThatTakeNoTimeAreSummed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		defer func() { assert.NoError(t, s.Close()) }()
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		for _, kind := range []string{"good", "bad", "unknown"} {
			_, err := q.Enqueue(t.Context(), taskqueue.Task{Type: kind, MaxFailures: 1})
			require.NoError(t, err)
		}
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{
			"good": func(context.Context, *taskqueue.Claim) error { return nil },
			"bad":  func(context.Context, *taskqueue.Claim) error { return errBoom },
		}, taskqueue.WorkUntilEmpty()))
		all, err := sums.Types(t.Context(), s.(taskqueue.NoteStore), "default")
		require.NoError(t, err)
		require.Len(t, all, 2)
		assert.EqualValues(t, 1, all["good"].Done)
		assert.EqualValues(t, 1, all["bad"].Failed)
	})
}
