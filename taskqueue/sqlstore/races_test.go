//go:build unix

package sqlstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A dead letter is retried, and the task that has its key ends between the two statements of that.
func TestATaskThatIsRetriedHoldsItsKey(t *testing.T) {
	all, _, _ := pgStores(t, 2)
	a, b := all[0], all[1]
	add(t, a, keyed("dead", "k"))
	got, err := claimAs(a, "w", "1/1", 1, time.Minute)
	require.NoError(t, err)
	settleAs(t, a, store.Buried, got.Tasks...)
	add(t, a, keyed("second", "k"))
	run, err := claimAs(a, "w", "1/2", 1, time.Minute)
	require.NoError(t, err)
	hook(a, onceAt("SELECT id FROM tq_unique", func() { settleAs(t, b, store.Succeeded, run.Tasks...) }))
	done, err := a.Act(t.Context(), "q", "dead", store.ActRetry)
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

// The process is stopped within a transaction, and the server ends that after two seconds: nothing of it was carried
// out, and it is repeated.
func TestATransactionInWhichTheProcessIsStoppedIsRepeated(t *testing.T) {
	all, pool, _ := pgStores(t, 1)
	s := all[0]
	stopped := func(at string) {
		hook(s, onceAt(at, func() {
			open := func() int64 {
				return number(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()")
			}
			assert.EqualValues(t, 1, open())
			assert.Eventually(t, func() bool { return open() == 0 }, patience, 10*time.Millisecond)
		}))
	}
	stopped("INSERT INTO tq_task")
	assert.Equal(t, []taskqueue.Result{{Verdict: taskqueue.Added, ID: "a"}}, add(t, s, newTask("a")))
	claimed(t, s, 0)
	stopped("INSERT INTO tq_worker") // in the message that has the commit
	got, err := claimAs(s, "w", "1/1", 1, time.Minute)
	require.NoError(t, err)
	require.Len(t, got.Tasks, 1)
	sound(t, s)

	tries := 0 // a connection by TCP is told why it has ended, and not only that
	require.NoError(t, s.db.transact(t.Context(), writes, func(t tx) error {
		var now moment
		if err := t.run(query{clock: &now}); err != nil {
			return err
		}
		if tries++; tries == 1 {
			return &pgconn.PgError{Severity: "FATAL", Code: idled}
		}
		return t.end()
	}))
	assert.Equal(t, 2, tries)
}

// A transaction of a user adds a task whose key another task gives up between two statements.
func TestEnqueueTxWhileTheHolderOfTheKeyEnds(t *testing.T) {
	all, pool, _ := pgStores(t, 2)
	a, b := all[0], all[1]
	add(t, a, keyed("first", "k"))
	run, err := claimAs(a, "w", "1/1", 1, time.Minute)
	require.NoError(t, err)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	hooked := &hookedUserTx{tx, onceAt("SELECT id FROM tq_unique", func() { settleAs(t, b, store.Succeeded, run.Tasks...) })}
	r, err := a.EnqueueTx(t.Context(), hooked, "q", []taskqueue.Task{keyed("second", "k")})
	require.NoError(t, err)
	assert.Equal(t, []taskqueue.Result{{Verdict: taskqueue.Added, ID: "second"}}, r)
	require.NoError(t, tx.Commit(t.Context()))
	assert.Equal(t, []taskqueue.Result{{Verdict: taskqueue.Duplicate, ID: "second"}}, add(t, b, keyed("third", "k")))
	sound(t, a)
}

// Two workers extend after a gap, in which neither could call: each has locked its own run, and
// spares those of the other.
func TestWorkersThatCallAfterAGapDoNotWaitForEachOther(t *testing.T) {
	const lease = 300 * time.Second
	all, pool, _ := pgStores(t, 2)
	var refs [2][]store.Ref
	for i, s := range all {
		add(t, s, newTask(fmt.Sprint("t", i)))
		got, err := claimAs(s, fmt.Sprint("w", i), "n/1", 1, lease)
		require.NoError(t, err)
		refs[i] = []store.Ref{{ID: got.Tasks[0].ID, Token: got.Tasks[0].Token}}
	}
	_, err := pool.Exec(t.Context(), "UPDATE tq_worker SET last_seen = last_seen - 200000000 WHERE last_seen > 0")
	require.NoError(t, err)
	extend := func(i int) error {
		_, err := all[i].Extend(context.Background(), store.ExtendRequest{Queue: "q", Worker: fmt.Sprint("w", i), Lease: lease, Refs: refs[i]})
		return err
	}
	var both, done sync.WaitGroup
	both.Add(2)
	for i, s := range all {
		hook(s, onceAt("SET spare_end", func() { both.Done(); both.Wait() }))
		done.Go(func() { assert.NoError(t, extend(i)) })
	}
	done.Wait()
	assert.Zero(t, deadlocks(t, pool))
}

// deadlocks is how many there were in a database. The server counts them when a transaction has ended, in a while.
func deadlocks(t *testing.T, pool *pgxpool.Pool) int64 {
	sleep(t.Context(), 1500*time.Millisecond)
	return number(t, pool, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
}

// Tasks that share names are added in rounds: those of one name one after the other, and all others
// before them, in the order of their ids.
func TestTasksThatShareNamesAreAddedInRounds(t *testing.T) {
	var tasks []*taskqueue.Task
	for _, of := range [][2]string{{"d", "k"}, {"c", ""}, {"b", "k"}, {"a", "l"}, {"c", "l"}, {"e", "k"}, {"0", ""}} {
		tasks = append(tasks, &taskqueue.Task{ID: of[0], UniqueKey: of[1]})
	}
	assert.Equal(t, [][]int{{6, 3, 1, 0}, {2, 4}, {5}}, (&adding{tasks: tasks}).rounds())
}

// The first task of a queue is added by a transaction of a user that goes on.
func TestANewQueueOfATransactionIsEverybodys(t *testing.T) {
	all, pool, _ := pgStores(t, 2)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	var txs [2]pgx.Tx
	for i := range txs {
		var err error
		txs[i], err = pool.Begin(ctx)
		require.NoError(t, err)
		defer func() { _ = txs[i].Rollback(context.Background()) }()
		_, err = all[i].EnqueueTx(ctx, txs[i], "q", []taskqueue.Task{newTask(fmt.Sprint("user", i))})
		require.NoError(t, err)
	}
	require.NoError(t, txs[0].Commit(ctx))
	names, err := all[1].Queues(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{"q"}, names)
	add(t, all[1], newTask("other"))
	require.NoError(t, txs[1].Commit(ctx))
	assert.Len(t, claimed(t, all[0], 10).Tasks, 3)
	names, err = all[1].Queues(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{"q"}, names)
	sound(t, all[0])
}
