//go:build unix

package sqlstore

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// opens returns what opens the same store each time, by the name of the database.
func opens(t *testing.T) map[string]func() *Store {
	path, pool := filepath.Join(t.TempDir(), "tasks.db"), poolOf(t, emptyDatabase(t))
	opened := func(s *Store, err error) *Store {
		require.NoError(t, err)
		return s
	}
	return map[string]func() *Store{
		"sqlite":   func() *Store { return opened(OpenFile(context.Background(), path)) },
		"postgres": func() *Store { return opened(New(context.Background(), pool)) },
	}
}

func taskUnder(id, key string) taskqueue.Task {
	one := newTask(id)
	one.LimitKey = key
	return one
}

const oldTask = `INSERT INTO tq_task (queue, id, kind, class, state, flags, due, token, settled, lease_end, lease, spare_end, worker, attempt, failures,
	crashes, releases, enqueued, started, ended, forget, unique_key, expires, retention, max_failures, max_crashes, size, extra`

// The tables of the version before limits, with a task that has failed in them.
func TestTablesOfBeforeThereWereLimitsAreTakenOver(t *testing.T) {
	all := migrations
	defer func() { migrations = all }()
	for name, open := range opens(t) {
		t.Run(name, func(t *testing.T) {
			migrations = all[:1]
			old := open()
			texts := []string{
				oldTask + ") VALUES ('q', 'old', 't', 7, 2, 0, 1, 5, 5, 0, 0, 0, 'w', 1, 1, 0, 0, 1, 1, 0, 0, '', 0, 0, 3, 3, 1, 0)",
				"INSERT INTO tq_payload VALUES ('q', 'old', x'70', x'', x'', x'', x'')",
			}
			if old.postgres {
				texts = []string{oldTask + ", payload, rest, error, result, progress) VALUES ('q', 'old', 't', 7, 2, 0, 1, 5, 5, 0, 0, 0, 'w', 1, 1, 0, 0, 1, 1, 0, 0, '', 0, 0, 3, 3, 1, 0, 'p', '', '', '', '')"}
			}
			require.NoError(t, old.db.transact(t.Context(), writes, func(tx tx) error {
				for _, text := range append(texts, "INSERT INTO tq_queue VALUES ('q', '{}', 5, '', 0)") {
					if err := tx.run(statement(text)); err != nil {
						return err
					}
				}
				return nil
			}))
			require.NoError(t, old.Close())
			migrations = all
			s := open()
			defer func() { require.NoError(t, s.Close()) }()
			sound(t, s)
			require.NoError(t, s.SetLimit(t.Context(), "q", taskqueue.Limit{Type: "t", Concurrency: 1}))
			add(t, s, newTask("new"))
			runs := claimed(t, s, 10).Tasks
			require.Len(t, runs, 1)
			assert.Equal(t, "old", runs[0].ID)
			assert.Equal(t, "p", string(runs[0].Payload))
			assert.Equal(t, 2, runs[0].Attempt)
			sound(t, s)
			settleAs(t, s, store.Succeeded, runs...)
			assert.Len(t, claimed(t, s, 10).Tasks, 1)
			sound(t, s)
		})
	}
}

// A place is given back while a claim, which has seen it taken, parks a task: it is not forgotten.
func TestAPlaceThatIsGivenBackDuringAClaimIsFound(t *testing.T) {
	all, _, _ := pgStores(t, 2)
	require.NoError(t, all[0].SetLimit(t.Context(), "q", taskqueue.Limit{Key: "k", Concurrency: 1}))
	add(t, all[0], taskUnder("a", "k"))
	run := claimed(t, all[0], 1).Tasks
	require.Len(t, run, 1)
	add(t, all[0], taskUnder("b", "k"))
	hook(all[0], onceAt("SELECT "+recordNames+" FROM tq_task WHERE queue = $1 AND class", func() {
		settleAs(t, all[1], store.Succeeded, run...)
	}))
	assert.Empty(t, claimed(t, all[0], 1).Tasks)
	sound(t, all[0])
	assert.Len(t, claimed(t, all[1], 1).Tasks, 1)
}

// A place is given back when a claim has begun, and before it takes the wakes: it sees both.
func TestAPlaceThatIsGivenBackBeforeAClaimTakesTheWakesIsFound(t *testing.T) {
	all, _, _ := pgStores(t, 2)
	require.NoError(t, all[0].SetLimit(t.Context(), "q", taskqueue.Limit{Key: "k", Concurrency: 1}))
	add(t, all[0], taskUnder("a", "k"))
	run := claimed(t, all[0], 1).Tasks
	require.Len(t, run, 1)
	add(t, all[0], taskUnder("b", "k"))
	require.Empty(t, claimed(t, all[0], 1).Tasks)
	hook(all[0], onceAt(staleText, func() { settleAs(t, all[1], store.Succeeded, run...) }))
	assert.Len(t, claimed(t, all[0], 1).Tasks, 1)
	sound(t, all[0])
}

// A limit is set when a claim has begun, and a task is parked and woken by it: the claim does not take the wake of a
// group that it does not know.
func TestAClaimThatHasReadOlderLimitsLosesNoWake(t *testing.T) {
	all, _, _ := pgStores(t, 2)
	require.NoError(t, all[0].SetLimit(t.Context(), "q", taskqueue.Limit{Key: "x", Concurrency: 1}))
	add(t, all[0], taskUnder("a", "k"), taskUnder("b", "k"))
	hook(all[0], onceAt("INSERT INTO tq_limit", func() {
		require.NoError(t, all[1].SetLimit(t.Context(), "q", taskqueue.Limit{Key: "k", Concurrency: 1}))
		got, err := claimAs(all[1], "w2", "2/1", 10, time.Minute)
		require.NoError(t, err)
		require.Len(t, got.Tasks, 1)
		settleAs(t, all[1], store.Succeeded, got.Tasks...)
	}))
	assert.Len(t, claimed(t, all[0], 10).Tasks, 1)
	sound(t, all[0])
}

// Claims at the same time keep a limit together.
func TestClaimsAtTheSameTimeKeepALimitOfAKey(t *testing.T) {
	all, pool, _ := pgStores(t, 2)
	require.NoError(t, all[0].SetLimit(t.Context(), "q", taskqueue.Limit{Key: "*", Concurrency: 2}))
	add(t, all[0], taskUnder("a", "k"), taskUnder("b", "k"), taskUnder("c", "k"), taskUnder("d", "k"))
	require.Len(t, claimed(t, all[0], 1).Tasks, 1)
	got := make(chan int, 1)
	hook(all[0], onceAt(heldText, func() {
		go func() {
			c, err := claimAs(all[1], "w2", "2/1", 1, time.Minute)
			assert.NoError(t, err)
			got <- len(c.Tasks)
		}()
		for number(t, pool, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0 && len(got) == 0 {
			time.Sleep(time.Millisecond)
		}
	}))
	c, err := claimAs(all[0], "w", "1/1", 1, time.Minute)
	require.NoError(t, err)
	assert.Len(t, c.Tasks, 1)
	assert.Zero(t, <-got)
	sound(t, all[0])
}

// A queue without limits has nothing written or counted for them.
func TestAClaimOfAQueueWithoutLimitsDoesNothingForThem(t *testing.T) {
	for name, open := range opens(t) {
		t.Run(name, func(t *testing.T) {
			s := open()
			defer func() { require.NoError(t, s.Close()) }()
			hook(s, func(text string) {
				for _, other := range []string{"tq_pace", "tq_limit", heldText, staleText} {
					assert.NotContains(t, text, other)
				}
			})
			add(t, s, taskUnder("a", "k"), newTask("b"))
			runs := claimed(t, s, 10).Tasks
			require.Len(t, runs, 2)
			settleAs(t, s, store.Succeeded, runs...)
		})
	}
}

func TestEnqueueTxKeepsTheLimitKey(t *testing.T) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			s, begin, _ := open(t)
			defer func() { require.NoError(t, s.Close()) }()
			require.NoError(t, s.SetLimit(t.Context(), "q", taskqueue.Limit{Key: "k", Concurrency: 1}))
			tx := begin()
			_, err := s.EnqueueTx(t.Context(), tx.tx, "q", []taskqueue.Task{taskUnder("a", "k"), taskUnder("b", "k")})
			require.NoError(t, err)
			_, err = s.EnqueueTx(t.Context(), tx.tx, "q", []taskqueue.Task{taskUnder("c", "k*")})
			assert.ErrorAs(t, err, new(*taskqueue.InvalidError))
			require.NoError(t, tx.end(true))
			runs := claimed(t, s, 10).Tasks
			require.Len(t, runs, 1)
			assert.Equal(t, "k", runs[0].LimitKey)
			sound(t, s)
		})
	}
}

// The auditor finds a task that is kept though there is room, and one that has no limit to be kept by.
func TestTheAuditorFindsWhatNothingBringsBack(t *testing.T) {
	s := openTemp(t)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.SetLimit(t.Context(), "q", taskqueue.Limit{Key: "k", Concurrency: 1}))
	add(t, s, taskUnder("a", "k"), taskUnder("b", "k"), newTask("c"))
	require.Len(t, claimed(t, s, 10).Tasks, 2)
	sound(t, s)
	change := func(text, want string) {
		require.NoError(t, s.db.transact(t.Context(), writes, func(tx tx) error { return tx.run(statement(text)) }))
		faults, err := s.Audit(t.Context(), "q")
		require.NoError(t, err)
		require.Len(t, faults, 1)
		assert.Contains(t, faults[0], want)
	}
	change("UPDATE tq_task SET limited = '' WHERE id = 'a'", "nothing brings them back")
	change("UPDATE tq_task SET limited = 'kk', state = CASE id WHEN 'b' THEN 1 ELSE state END WHERE id <> 'c'", "b is scheduled, and has the limit")
}
