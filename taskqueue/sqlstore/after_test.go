//go:build unix

package sqlstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func childTask(id string, parents ...string) taskqueue.Task {
	one := newTask(id)
	one.After = parents
	return one
}

func stateOf(t *testing.T, s *Store, id string) taskqueue.State {
	i, err := s.Get(context.Background(), "q", id)
	require.NoError(t, err)
	return i.State
}

// A database of the version before has tasks, and gets what is new when it is opened.
func TestADatabaseOfTheVersionBeforeGoesOn(t *testing.T) {
	url := emptyDatabase(t)
	path := t.TempDir() + "/tasks.db"
	for name, open := range map[string]func() (*Store, error){
		"sqlite":   func() (*Store, error) { return OpenFile(t.Context(), path) },
		"postgres": func() (*Store, error) { return New(t.Context(), poolOf(t, url)) },
	} {
		t.Run(name, func(t *testing.T) {
			all := migrations
			migrations = all[:1]
			defer func() { migrations = all }()
			_, err := open()
			require.NoError(t, err)
			migrations = all
			s, err := open()
			require.NoError(t, err)
			defer func() { assert.NoError(t, s.Close()) }()
			add(t, s, newTask("a"), childTask("b", "a"))
			got, err := claimAs(s, "w", "1/1", 10, time.Minute)
			require.NoError(t, err)
			require.Len(t, got.Tasks, 1)
			settleAs(t, s, store.Succeeded, got.Tasks...)
			assert.Equal(t, taskqueue.StateReady, stateOf(t, s, "b"))
			migrations = all[:1]
			_, err = open()
			assert.ErrorContains(t, err, "update the program")
		})
	}
}

func TestChildrenAreAddedInATransactionOfTheUser(t *testing.T) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			s, begin, _ := open(t)
			defer func() { require.NoError(t, s.Close()) }()
			add(t, s, newTask("a"), newTask("dead"))
			got, err := claimAs(s, "w", "1/1", 10, time.Minute)
			require.NoError(t, err)
			settleAs(t, s, store.Buried, got.Tasks[1])
			for _, commit := range []bool{false, true} {
				tx := begin()
				_, err := s.EnqueueTx(t.Context(), tx.tx, "q", []taskqueue.Task{childTask("x", "nobody")})
				var wrong *taskqueue.InvalidError
				require.ErrorAs(t, err, &wrong)
				r, err := s.EnqueueTx(t.Context(), tx.tx, "q", []taskqueue.Task{childTask("b", "a"), childTask("c", "b"), childTask("skip", "dead"), childTask("next", "skip")})
				require.NoError(t, err)
				for _, one := range r {
					assert.Equal(t, taskqueue.Added, one.Verdict)
				}
				require.NoError(t, tx.end(commit))
			}
			sound(t, s)
			_, err = claimAs(s, "w", "1/2", 10, time.Minute)
			require.NoError(t, err)
			assert.Equal(t, taskqueue.StateCancelled, stateOf(t, s, "skip"), "a claim has told it")
			assert.Equal(t, taskqueue.StateCancelled, stateOf(t, s, "next"))
			settleAs(t, s, store.Succeeded, got.Tasks[0])
			assert.Equal(t, taskqueue.StateReady, stateOf(t, s, "b"))
			assert.Equal(t, taskqueue.StateWaiting, stateOf(t, s, "c"))
			sound(t, s)
		})
	}
}

// A transaction of a user adds a child, and goes on. The parent is extended meanwhile, what comes with its
// end is settled, and its end waits.
func TestATransactionOfAUserHoldsUpTheEndOfTheParentAlone(t *testing.T) {
	all, pool, _ := pgStores(t, 2)
	a, b := all[0], all[1]
	add(t, a, newTask("other"), newTask("parent"))
	got, err := claimAs(a, "w", "1/1", 2, time.Minute)
	require.NoError(t, err)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = a.EnqueueTx(t.Context(), tx, "q", []taskqueue.Task{childTask("child", "parent")})
	require.NoError(t, err)
	var refs []store.Ref
	for _, run := range got.Tasks {
		refs = append(refs, store.Ref{ID: run.ID, Token: run.Token})
	}
	extended, err := b.Extend(t.Context(), store.ExtendRequest{Queue: "q", Worker: "w", Refs: refs, Lease: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, []store.ExtendResult{store.Extended, store.Extended}, extended)
	var settled sync.WaitGroup
	settled.Go(func() {
		assert.Equal(t, []store.SettleResult{store.Settled, store.Settled}, settleAs(t, b, store.Succeeded, got.Tasks...))
	})
	require.Eventually(t, func() bool { return stateOf(t, a, "other") == taskqueue.StateDone }, patience, time.Millisecond)
	assert.Equal(t, taskqueue.StateRunning, stateOf(t, a, "parent"))
	require.NoError(t, tx.Commit(t.Context()))
	settled.Wait()
	assert.Equal(t, taskqueue.StateReady, stateOf(t, a, "child"))
	sound(t, a)
}

// The parent ends while a child is added: before its row is locked, and behind that.
func TestAParentEndsWhileAChildIsAdded(t *testing.T) {
	for name, at := range map[string]string{"before": "FOR KEY SHARE", "behind": "INSERT INTO tq_edge"} {
		t.Run(name, func(t *testing.T) {
			all, _, _ := pgStores(t, 2)
			a, b := all[0], all[1]
			add(t, a, newTask("parent"))
			got, err := claimAs(a, "w", "1/1", 1, time.Minute)
			require.NoError(t, err)
			var settled sync.WaitGroup
			hook(a, onceAt(at, func() {
				settled.Go(func() { settleAs(t, b, store.Succeeded, got.Tasks...) })
				if name == "before" {
					settled.Wait()
				}
			}))
			add(t, a, childTask("child", "parent"))
			settled.Wait()
			assert.Equal(t, taskqueue.StateReady, stateOf(t, b, "child"))
			sound(t, b)
		})
	}
}

// The parent is added when a child has locked its parents, and before it reads them: it is locked, too, and nobody
// ends it before the child is there.
func TestAParentIsAddedWhileItsChildIs(t *testing.T) {
	all, _, _ := pgStores(t, 2)
	a, b := all[0], all[1]
	add(t, b, newTask("other"))
	added := onceAt("", func() { add(t, b, newTask("parent")) })
	ends := onceAt("INSERT INTO tq_edge", func() { settleAs(t, b, store.Succeeded, claimed(t, b, 2).Tasks...) })
	a.db = &hooked{a.db, func(text string) {
		if text == readStates.postgres {
			added(text)
		}
		ends(text)
	}, true}
	add(t, a, childTask("child", "parent"))
	sound(t, a)
	settleAs(t, b, store.Succeeded, claimed(t, b, 2).Tasks...)
	assert.Equal(t, taskqueue.StateReady, stateOf(t, b, "child"))
}

// Two parents of one child end at the same time: the second finds it locked, and a claim tells it.
func TestTwoParentsOfOneChildEndAtTheSameTime(t *testing.T) {
	all, pool, _ := pgStores(t, 2)
	a, b := all[0], all[1]
	add(t, a, newTask("a"), newTask("b"), childTask("child", "a", "b"))
	got, err := claimAs(a, "w", "1/1", 2, time.Minute)
	require.NoError(t, err)
	hook(a, onceAt("DELETE FROM tq_edge", func() { settleAs(t, b, store.Succeeded, got.Tasks[1]) }))
	settleAs(t, a, store.Succeeded, got.Tasks[0])
	assert.EqualValues(t, 1, number(t, pool, "SELECT count(*) FROM tq_release"))
	sound(t, a)
	next, err := claimAs(b, "w", "1/2", 2, time.Minute)
	require.NoError(t, err)
	require.Len(t, next.Tasks, 1)
	assert.Equal(t, "child", next.Tasks[0].ID)
	assert.Zero(t, number(t, pool, "SELECT count(*) FROM tq_release"))
	sound(t, a)
}

// Each of these is planted for the audit to find.
func TestChildrenThatWereToldNothingAreFound(t *testing.T) {
	for name, text := range map[string]string{
		"and was not told":  "UPDATE tq_task SET state = 5, ended = 1, forget = 1, lease_end = 0 WHERE id = 'a'",
		"waits for nothing": "DELETE FROM tq_edge",
		"does not wait":     "UPDATE tq_task SET state = 1 WHERE id = 'child'",
	} {
		t.Run(name, func(t *testing.T) {
			s := openTemp(t)
			defer func() { require.NoError(t, s.Close()) }()
			add(t, s, newTask("a"), childTask("child", "a"))
			sound(t, s)
			require.NoError(t, s.db.transact(t.Context(), writes, func(t tx) error { return t.end(statement(text)) }))
			faults, err := s.Audit(t.Context(), "q")
			require.NoError(t, err)
			require.Len(t, faults, 1)
			assert.Contains(t, faults[0], name)
		})
	}
}

// The edges of a task are found by an index, however many there are of others.
func TestPlansOfEdges(t *testing.T) {
	s := openTemp(t)
	defer func() { require.NoError(t, s.Close()) }()
	const byParent, byChild = `PRIMARY KEY \(queue=\? AND parent=\?`, `INDEX tq_edge_child \(queue=\? AND child=\?`
	for b, by := range map[*bulk]string{
		haveChildren: byParent, readDone: byParent, readFailed: byParent, removeEdge: byChild, countEdges: byChild, removeEdges: byChild,
	} {
		var plan []string
		require.NoError(t, s.db.transact(t.Context(), reads, func(tx tx) error {
			return tx.run(query{text: "EXPLAIN QUERY PLAN " + b.sqlite, args: make([]any, strings.Count(b.sqlite, "$")), each: func(scan func(...any) error) error {
				var id, parent, unused int64
				var detail string
				err := scan(&id, &parent, &unused, &detail)
				plan = append(plan, detail)
				return err
			}})
		}))
		text := strings.Join(plan, "\n")
		assert.Regexp(t, "SEARCH tq_edge (EXISTS )?USING (COVERING )?"+by, text, b.sqlite)
	}
}

// Each generation is some statements more: a step has a bounded number of them.
func TestAStepCancelsSomeGenerations(t *testing.T) {
	s := openTemp(t)
	defer func() { require.NoError(t, s.Close()) }()
	tasks := []taskqueue.Task{newTask("00")}
	for i := 1; i < 40; i++ {
		tasks = append(tasks, childTask(fmt.Sprintf("%02d", i), tasks[i-1].ID))
	}
	add(t, s, tasks...)
	_, err := s.Act(t.Context(), "q", "00", store.ActCancel)
	require.NoError(t, err)
	assert.Equal(t, taskqueue.StateCancelled, stateOf(t, s, fmt.Sprint(maxDepth)))
	assert.Equal(t, taskqueue.StateWaiting, stateOf(t, s, fmt.Sprint(maxDepth+1)))
	sound(t, s)
}
