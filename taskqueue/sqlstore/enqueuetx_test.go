//go:build unix

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A userTx is a transaction of a user, of either kind.
type userTx struct {
	tx   any
	exec func(text string) error
	end  func(commit bool) error
}

func sqlTx(t *testing.T, db *sql.DB) userTx {
	tx, err := db.Begin()
	require.NoError(t, err)
	return userTx{tx, func(text string) error { _, err := tx.Exec(text); return err }, func(commit bool) error {
		if commit {
			return tx.Commit()
		}
		return tx.Rollback()
	}}
}

// databases open a store, and begin transactions in its database and in another one.
var databases = map[string]func(t *testing.T) (s *Store, begin, other func() userTx){
	"sqlite": func(t *testing.T) (*Store, func() userTx, func() userTx) {
		open := func() (*sql.DB, string) {
			path := filepath.Join(t.TempDir(), "tasks.db")
			db, err := sql.Open("sqlite", path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, db.Close()) })
			return db, path
		}
		db, path := open()
		s, err := OpenFile(t.Context(), path)
		require.NoError(t, err)
		elsewhere, _ := open()
		return s, func() userTx { return sqlTx(t, db) }, func() userTx { return sqlTx(t, elsewhere) }
	},
	"postgres": func(t *testing.T) (*Store, func() userTx, func() userTx) {
		pool, elsewhere := poolOf(t, emptyDatabase(t)), poolOf(t, emptyDatabase(t))
		s, err := New(t.Context(), pool)
		require.NoError(t, err)
		_, err = New(t.Context(), elsewhere) // it has such tables, too
		require.NoError(t, err)
		begin := func(of interface {
			Begin(context.Context) (pgx.Tx, error)
		}) userTx {
			tx, err := of.Begin(context.Background())
			require.NoError(t, err)
			return userTx{tx, func(text string) error { _, err := tx.Exec(context.Background(), text); return err }, func(commit bool) error {
				if commit {
					return tx.Commit(context.Background())
				}
				return tx.Rollback(context.Background())
			}}
		}
		return s, func() userTx { return begin(pool) }, func() userTx { return begin(elsewhere) }
	},
	"postgres by database/sql": func(t *testing.T) (*Store, func() userTx, func() userTx) {
		open := func() (*sql.DB, string) {
			url := emptyDatabase(t)
			db, err := sql.Open("pgx", url)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, db.Close()) })
			return db, url
		}
		db, url := open()
		s, err := New(t.Context(), poolOf(t, url))
		require.NoError(t, err)
		elsewhere, _ := open()
		return s, func() userTx { return sqlTx(t, db) }, func() userTx { return sqlTx(t, elsewhere) }
	},
}

func TestTasksExistIfAndOnlyIfTheTransactionOfTheUserDoes(t *testing.T) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			s, begin, other := open(t)
			defer func() { require.NoError(t, s.Close()) }()
			q, err := taskqueue.New(s)
			require.NoError(t, err)
			add := func(tx userTx, tasks ...taskqueue.Task) ([]taskqueue.Result, error) {
				return q.EnqueueTx(t.Context(), tx.tx, tasks...)
			}
			tx := begin()
			require.NoError(t, tx.exec("CREATE TABLE orders (id INTEGER)"))
			require.NoError(t, tx.end(true))

			tx = begin()
			require.NoError(t, tx.exec("INSERT INTO orders VALUES (1)"))
			_, err = add(tx, taskqueue.Task{ID: "rolled back", Type: "t", UniqueKey: "k"})
			require.NoError(t, err)
			require.NoError(t, tx.end(false))
			_, err = q.Get(t.Context(), "rolled back")
			require.ErrorIs(t, err, taskqueue.ErrNotFound)

			tx = begin()
			require.NoError(t, tx.exec("INSERT INTO orders VALUES (2)"))
			results, err := add(tx, taskqueue.Task{ID: "a", Type: "t", UniqueKey: "k", Payload: []byte("p")}, taskqueue.Task{ID: "b", Type: "t", UniqueKey: "k"}, taskqueue.Task{ID: "a", Type: "t"}, taskqueue.Task{ID: "later", Type: "t", Delay: time.Hour})
			require.NoError(t, err)
			assert.Equal(t, []taskqueue.Result{{Verdict: taskqueue.Added, ID: "a"}, {Verdict: taskqueue.Duplicate, ID: "a"}, {Verdict: taskqueue.Exists, ID: "a"}, {Verdict: taskqueue.Added, ID: "later"}}, results)
			_, err = q.Get(t.Context(), "a")
			require.ErrorIs(t, err, taskqueue.ErrNotFound, "it is not committed")
			require.NoError(t, tx.end(true))
			i, err := q.Get(t.Context(), "a")
			require.NoError(t, err)
			assert.Equal(t, "p", string(i.Payload))

			tx = other()
			_, err = add(tx, taskqueue.Task{ID: "elsewhere", Type: "t"})
			require.ErrorIs(t, err, taskqueue.ErrOtherDatabase)
			assert.NotContains(t, err.Error(), "%!")
			require.NoError(t, tx.end(false))
			_, err = q.EnqueueTx(t.Context(), "no transaction", taskqueue.Task{Type: "t"})
			require.ErrorAs(t, err, new(*taskqueue.InvalidError))

			stats, err := q.Stats(t.Context())
			require.NoError(t, err)
			assert.EqualValues(t, 2, stats.Counts[taskqueue.CountAdded])
			got, err := s.Claim(t.Context(), store.ClaimRequest{Queue: q.Name(), Worker: "w", Nonce: "1", Max: 10, Lease: time.Minute})
			require.NoError(t, err)
			require.Len(t, got.Tasks, 1)
			after, err := q.Stats(t.Context())
			require.NoError(t, err)
			assert.Equal(t, stats.Counts[taskqueue.CountAdded], after.Counts[taskqueue.CountAdded], "a claim folds what transactions have counted")
			faults, err := s.Audit(t.Context(), q.Name())
			require.NoError(t, err)
			assert.Empty(t, faults)
		})
	}
}

// At the higher levels of PostgreSQL a transaction is refused that another one is in the way of, and is to be
// repeated; those that have nothing in common are not in each other's way.
func TestEnqueueTxAtHigherLevelsOfIsolation(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			all, pool, _ := pgStores(t, 1)
			s := all[0]
			begin := func() pgx.Tx {
				tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
				require.NoError(t, err)
				t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
				_, err = tx.Exec(t.Context(), "SELECT 1") // from now on it sees what is committed now
				require.NoError(t, err)
				return tx
			}
			enqueue := func(tx pgx.Tx, tasks ...taskqueue.Task) (taskqueue.Result, error) {
				r, err := s.EnqueueTx(t.Context(), tx, "q", tasks)
				return append(r, taskqueue.Result{})[0], err
			}
			both := []pgx.Tx{begin(), begin()}
			for i, tx := range both {
				_, err := enqueue(tx, newTask(fmt.Sprint("apart", i)))
				require.NoError(t, err)
			}
			add(t, s, newTask("beside"))
			assert.Len(t, claimed(t, s, 10).Tasks, 1, "a worker goes on")
			for _, tx := range both {
				require.NoError(t, tx.Commit(t.Context()))
			}
			assert.Len(t, claimed(t, s, 10).Tasks, 2)

			first, second := begin(), begin()
			_, err := enqueue(first, keyed("first", "k"), childTask("child", "first"))
			require.NoError(t, err)
			require.NoError(t, first.Commit(t.Context()))
			_, err = enqueue(second, keyed("second", "k"))
			var refused *pgconn.PgError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, "40001", refused.Code)
			require.NoError(t, second.Rollback(t.Context()))
			r, err := enqueue(begin(), keyed("second", "k"))
			require.NoError(t, err)
			assert.Equal(t, taskqueue.Result{Verdict: taskqueue.Duplicate, ID: "first"}, r)
			assert.Len(t, claimed(t, s, 10).Tasks, 1)
			sound(t, s)
		})
	}
}

// A worker that sleeps hears of a task when the transaction is committed.
func TestWorkersHearOfATaskWhenItIsCommitted(t *testing.T) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			s, begin, _ := open(t)
			defer func() { require.NoError(t, s.Close()) }()
			q, err := taskqueue.New(s)
			require.NoError(t, err)
			claim := func(nonce string) taskqueue.Claimed {
				got, err := s.Claim(t.Context(), store.ClaimRequest{Queue: q.Name(), Worker: "w", Nonce: nonce, Max: 1, Lease: time.Minute})
				require.NoError(t, err)
				return got
			}
			for range 5 {
				require.NoError(t, s.Wait(t.Context(), q.Name(), claim(time.Now().String()).Seen, time.Now().Add(20*time.Millisecond)))
			}
			told := claim("last")
			tx := begin()
			_, err = q.EnqueueTx(t.Context(), tx.tx, taskqueue.Task{ID: "a", Type: "t"})
			require.NoError(t, err)
			require.NoError(t, tx.end(true))
			const long = 30 * time.Second
			begun := time.Now()
			require.NoError(t, s.Wait(t.Context(), q.Name(), told.Seen, begun.Add(long)))
			assert.Less(t, time.Since(begun), long)
		})
	}
}

// The counts of a process that has ended are kept, and its rows are not.
func TestCountsOfProcessesThatHaveEndedAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	rows := func(s *Store) (n int64) {
		require.NoError(t, s.db.transact(t.Context(), reads, func(t tx) error { return t.run(row("SELECT count(*) FROM tq_worker", nil, &n)) }))
		return n
	}
	for i := range 5 {
		s, err := OpenFile(t.Context(), path)
		require.NoError(t, err)
		_, err = s.Enqueue(t.Context(), "q", []taskqueue.Task{newTask(string(rune('a' + i)))})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	s, err := OpenFile(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	assert.EqualValues(t, 5, rows(s))
	f := s.db.(*file)
	machine := f.clock
	f.clock = func() moment { m := machine(); m.steady += (2 * time.Hour).Microseconds(); return m }
	assert.Len(t, claimed(t, s, 10).Tasks, 5)
	assert.EqualValues(t, 1, rows(s))
	stats, err := s.Stats(t.Context(), "q")
	require.NoError(t, err)
	assert.EqualValues(t, 5, stats.Counts[taskqueue.CountAdded])
}
