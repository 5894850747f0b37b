//go:build unix

package sqlstore

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// at is a task that is due so long before now.
func at(id string, before time.Duration) taskqueue.Task {
	t := newTask(id)
	t.RunAt = time.Now().Add(-before)
	return t
}

func enqueued(t *testing.T, s *Store, tasks ...taskqueue.Task) {
	_, err := s.Enqueue(t.Context(), "q", tasks)
	require.NoError(t, err)
}

// A claim begins to look where the last has found something. A task that this process adds before
// that is found by the next all the same.
func TestWhatIsAddedBeforeTheFrontIsClaimedNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := OpenFile(context.Background(), memory)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		enqueued(t, s, at("a", time.Minute), at("b", time.Minute), at("c", time.Minute))
		require.Len(t, claimed(t, s, 1).Tasks, 1)
		enqueued(t, s, at("earlier", time.Hour))
		got := claimed(t, s, 1).Tasks
		require.Len(t, got, 1)
		assert.Equal(t, "earlier", got[0].ID)
		_, err = s.Settle(t.Context(), "q", []store.Outcome{{Ref: store.Ref{ID: "earlier", Token: got[0].Token}, Kind: store.Released}})
		require.NoError(t, err)
		require.Len(t, claimed(t, s, 3).Tasks, 3)
	})
}

// Another process adds before the front of this one: it is found when there is nothing behind
// the front, or after a second.
func TestWhatOthersAddBeforeTheFrontIsFoundWithinASecond(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	var both [2]*Store
	for i := range both {
		s, err := OpenFile(t.Context(), path)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		both[i] = s
	}
	enqueued(t, both[0], at("a", time.Minute), at("b", time.Minute), at("c", time.Minute))
	require.Len(t, claimed(t, both[0], 1).Tasks, 1)
	enqueued(t, both[1], at("earlier", time.Hour))
	both[0].fronts.by["q"].whole = time.Now().Add(-wholeEvery)
	got := claimed(t, both[0], 1).Tasks
	require.Len(t, got, 1)
	assert.Equal(t, "earlier", got[0].ID)
	require.Len(t, claimed(t, both[0], 3).Tasks, 2)
	enqueued(t, both[1], at("earliest", 2*time.Hour))
	assert.Len(t, claimed(t, both[0], 1).Tasks, 1, "there was nothing behind the front")
}

// A claim that has looked before something was added does not move the front past it.
func TestAFrontIsNotMovedPastWhatWasAddedMeanwhile(t *testing.T) {
	var f fronts
	seen := f.look("q")
	seen.due[0] = 100
	f.found("q", seen.due, seen.lowered, false)
	seen = f.look("q")
	f.lower("q", dues{50, -1, -1, -1, -1, -1, -1, -1})
	seen.due[0] = 200
	f.found("q", seen.due, seen.lowered, false)
	assert.EqualValues(t, 50, f.of("q")[0])
	seen = f.look("q")
	seen.due[0] = 200
	f.found("q", seen.due, seen.lowered, false)
	assert.EqualValues(t, 200, f.of("q")[0])
}
