//go:build unix

package sqlstore

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

// Tasks that were acknowledged are there after kill -9 of the server, and the store goes on with the
// server that is started again. Each other Enqueue has an error.
func TestAPostgresThatIsKilledAndStartedAgain(t *testing.T) {
	c := startCluster(t, "-c", "fsync=on")
	defer func() { _ = os.RemoveAll(c.dir) }()
	defer func() { c.stop() }()
	s, err := New(t.Context(), poolOf(t, c.url("postgres")))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	var mu sync.Mutex
	var acknowledged []string
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d", i, n)
				if _, err := s.Enqueue(t.Context(), "q", []taskqueue.Task{newTask(id)}); err != nil {
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, id)
				mu.Unlock()
			}
		})
	}
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(acknowledged) > 200 }, patience, time.Millisecond)
	runs := claimed(t, s, 5).Tasks
	require.Len(t, runs, 5)
	c.end(os.Kill)
	all.Wait()
	require.Eventually(t, func() bool { // the processes of the server for connections end a little later than it
		_, err = s.Claim(t.Context(), store.ClaimRequest{Queue: "q", Worker: "w", Nonce: "down", Max: 1, Lease: time.Minute})
		return err != nil
	}, patience, time.Millisecond)
	c.start(t, "-c", "fsync=on")
	for _, id := range acknowledged {
		_, err := s.Get(t.Context(), "q", id)
		require.NoError(t, err, id)
	}
	r, err := s.Settle(t.Context(), "q", []store.Outcome{{Ref: store.Ref{ID: runs[0].ID, Token: runs[0].Token}, Kind: store.Succeeded}})
	require.NoError(t, err)
	assert.Equal(t, []store.SettleResult{store.Settled}, r)
	next := claimed(t, s, 1).Tasks
	require.Len(t, next, 1)
	assert.Greater(t, next[0].Token, runs[4].Token)
	sound(t, s)
}

// The isolation is set by each transaction, so it does not matter what it is by default.
func TestPostgresWithAnotherDefaultIsolation(t *testing.T) {
	url := emptyDatabase(t)
	admin, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = admin.Exec(t.Context(), "ALTER DATABASE "+url[strings.LastIndex(url, "/")+1:strings.Index(url, "?")]+" SET default_transaction_isolation = 'serializable'")
	require.NoError(t, err)
	require.NoError(t, admin.Close(context.Background()))
	pool := poolOf(t, url)
	s, err := New(t.Context(), pool)
	require.NoError(t, err)
	require.NoError(t, taskqueuetest.Program(s, taskqueuetest.RandomText(1, 400), 30*time.Millisecond, false))
	require.NoError(t, s.Close())

	s, err = New(t.Context(), pool, Prefix("many_"))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 20 {
				one := newTask(fmt.Sprintf("%d-%d", i, n))
				one.UniqueKey = fmt.Sprint(n)
				_, err := s.Enqueue(t.Context(), "q", []taskqueue.Task{one})
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	stats, err := s.Stats(t.Context(), "q")
	require.NoError(t, err)
	assert.EqualValues(t, 20, stats.Counts[taskqueue.CountAdded])
	assert.EqualValues(t, 140, stats.Counts[taskqueue.CountDuplicate])
	sound(t, s)
}
