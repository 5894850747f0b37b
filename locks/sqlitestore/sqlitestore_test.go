package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

func TestMain(m *testing.M) {
	lockstest.Main()
	// Each connection that was opened has one of these until it is closed.
	goleak.VerifyTestMain(m)
}

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c%d#e'f.db")
	lockstest.Run(t, func(t testing.TB) locks.Store { return opened(t, path) })
}

// TestStoreOnPoolOfUser has pools of one connection, and nothing set.
func TestStoreOnPoolOfUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	lockstest.RunAgain(t, func(t testing.TB) locks.Store {
		s, err := New(t.Context(), pool(t, path))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	})
}

func TestStoreInMemory(t *testing.T) {
	s := opened(t, ":memory:")
	name := locks.Name{Tenant: "t", Key: "k"}
	hints, stop := s.Listen(name)
	defer stop()
	handOn(t, s, s, name, hints)
}

// handOn has one request of a store release a lock for which another waits, until that is hinted: a
// request may be forgotten before its hint comes, on a busy machine.
func handOn(t testing.TB, s, releases *Store, name locks.Name, hints <-chan struct{}) {
	t.Helper()
	for range 10 {
		turn, err := s.Acquire(t.Context(), name, []locks.Request{request("a"), request("b")})
		require.NoError(t, err)
		require.True(t, turn.Answers[0].Granted)
		_, err = releases.Release(t.Context(), name, locks.Ref{ID: "a"}, nil)
		require.NoError(t, err)
		select {
		case <-hints:
			return
		case <-time.After(locks.WaiterLife):
		}
		_, err = s.Release(t.Context(), name, locks.Ref{ID: "b"}, nil)
		require.NoError(t, err)
	}
	require.Fail(t, "no hint came")
}

func opened(t testing.TB, path string) *Store {
	t.Helper()
	s, err := locks.Open(t.Context(), "sqlite:"+path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*Store)
}

// pool is what a user of SQLite has.
func pool(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func request(id string) locks.Request {
	return locks.Request{ID: id, Version: "v-" + id, Owner: "owner", Kind: locks.Mutex, Lease: time.Hour, Wait: true}
}

func TestManyMayOpenANewFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			_, err = s.Acquire(t.Context(), locks.Name{Tenant: "t", Key: "k"}, []locks.Request{request(lockstest.ID())})
			if err = errors.Join(err, s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestTheTablesOfVersion1BecomeThoseOfThisOne takes away what version 1 did not have.
func TestTheTablesOfVersion1BecomeThoseOfThisOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	first := opened(t, path)
	name := func(key string) locks.Name { return locks.Name{Tenant: "t", Key: key} }
	take := func(s *Store, key, id string) locks.Answer {
		turn, err := s.Acquire(t.Context(), name(key), []locks.Request{request(id)})
		require.NoError(t, err)
		return turn.Answers[0]
	}
	take(first, "old", "a")
	_, err := first.Release(t.Context(), name("old"), locks.Ref{ID: "a"}, nil)
	require.NoError(t, err)
	db := pool(t, path)
	for _, statement := range []string{
		"DROP INDEX lk_due", "ALTER TABLE lk_resource DROP COLUMN bucket", "ALTER TABLE lk_resource DROP COLUMN retention_us",
		"ALTER TABLE lk_resource DROP COLUMN due_us", "ALTER TABLE lk_entry DROP COLUMN most", "DROP TABLE lk_floor", "UPDATE lk_schema SET version = 1, deleted = 3000000000000000",
	} {
		_, err := db.Exec(statement)
		require.NoError(t, err)
	}
	s := opened(t, path)
	require.True(t, take(s, "old", "b").Granted)
	require.Greater(t, take(s, "new", "c").Grant.Fence, int64(3e15), "the floor of version 1 is that of all")
}

func TestASchemaOfANewerVersionIsAnErrorAndStaysAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	opened(t, path)
	db := pool(t, path)
	_, err := db.Exec("UPDATE lk_schema SET version = 99")
	require.NoError(t, err)
	_, err = Open(t.Context(), path)
	require.ErrorIs(t, err, locks.ErrValidation)
	require.ErrorContains(t, err, "version 99")
	_, err = New(t.Context(), db)
	require.ErrorIs(t, err, locks.ErrValidation)
	var version int
	require.NoError(t, db.QueryRow("SELECT version FROM lk_schema").Scan(&version))
	require.Equal(t, 99, version)
}

func TestAStepWaitsForABusyFileUntilItsContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, db := opened(t, path), pool(t, path)
	name := locks.Name{Tenant: "t", Key: "k"}
	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec("DELETE FROM lk_entry")
	require.NoError(t, err)

	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("enough")) })
	_, err = s.Acquire(ctx, name, []locks.Request{request("a")})
	require.ErrorIs(t, err, locks.ErrUnavailable)
	require.ErrorContains(t, err, "enough")
	_, err = s.Get(t.Context(), name)
	require.ErrorIs(t, err, locks.ErrNotFound, "readers do not wait for a writer")

	time.AfterFunc(10*time.Millisecond, func() { _ = tx.Rollback() })
	turn, err := s.Acquire(t.Context(), name, []locks.Request{request("a")})
	require.NoError(t, err)
	require.True(t, turn.Answers[0].Granted)
}

// TestOnlyWhatCanBeGrantedIsHinted has another process change the file all the time:
// each hint would have this one write, which would have all others look, for ever.
func TestOnlyWhatCanBeGrantedIsHinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, other := opened(t, path), opened(t, path)
	name := locks.Name{Tenant: "t", Key: "k"}
	_, err := other.Acquire(t.Context(), name, []locks.Request{request("holder")})
	require.NoError(t, err)
	turn, err := s.Acquire(t.Context(), name, []locks.Request{request("waiter")})
	require.NoError(t, err)
	require.False(t, turn.Answers[0].Granted)
	hints, stop := s.Listen(name)
	defer stop()
	last, stopLast := s.Listen(locks.Name{Tenant: "t", Key: "last"})
	defer stopLast()
	for i := range 50 {
		_, err := other.Acquire(t.Context(), locks.Name{Tenant: "t", Key: fmt.Sprint("other ", i)}, []locks.Request{request("x")})
		require.NoError(t, err)
		_, err = other.Renew(t.Context(), []locks.Renewal{{Name: name, Ref: locks.Ref{ID: "holder"}, Lease: time.Hour}})
		require.NoError(t, err)
	}
	// A hint of the last lock says that the watcher has seen all that was before.
	handOn(t, s, other, locks.Name{Tenant: "t", Key: "last"}, last)
	require.Empty(t, hints)
}

func TestRenewalsOfManySortsAreAnsweredInTheirOrder(t *testing.T) {
	s := opened(t, filepath.Join(t.TempDir(), "locks.db"))
	var all []locks.Renewal
	var want []locks.RenewVerdict
	for i := range 3*many + 7 {
		name, id := locks.Name{Tenant: "t", Key: fmt.Sprint("key ", i)}, fmt.Sprint("id-", i/2) // each ID twice
		r := locks.Renewal{Name: name, Ref: locks.Ref{ID: id}, Lease: time.Duration(1+i%2) * time.Hour}
		verdict := locks.Extended
		q := request(id)
		switch i % 10 {
		case 3:
			q.Kind, q.Size = locks.Semaphore, 2
		case 4:
			r.ID, verdict = "nobody", locks.NotYours
		case 5:
			r.NewVersion = "new"
		case 6:
			verdict = locks.Revoked
		}
		_, err := s.Acquire(t.Context(), name, []locks.Request{q})
		require.NoError(t, err)
		if verdict == locks.Revoked {
			_, err := s.Revoke(t.Context(), name, locks.Ref{}, false)
			require.NoError(t, err)
		}
		all, want = append(all, r), append(want, verdict)
	}
	results, err := s.Renew(t.Context(), all)
	require.NoError(t, err)
	for i, result := range results {
		require.Equal(t, want[i], result.Verdict, "renewal %d", i)
		if result.Verdict == locks.Extended {
			require.Equal(t, all[i].ID, result.Grant.ID)
			require.Equal(t, all[i].Lease, result.Grant.Lease)
		}
	}
}

func TestCloseEndsTheStoreButNotThePoolOfTheUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	db := pool(t, path)
	s, err := New(t.Context(), db)
	require.NoError(t, err)
	_, stop := s.Listen(locks.Name{Tenant: "t", Key: "k"})
	require.NoError(t, s.Close())
	stop()
	_, stop = s.Listen(locks.Name{Tenant: "t", Key: "k"}) // starts nothing
	stop()
	_, err = s.Acquire(t.Context(), locks.Name{Tenant: "t", Key: "k"}, []locks.Request{request("a")})
	require.ErrorIs(t, err, locks.ErrClosed)
	require.ErrorIs(t, err, locks.ErrUnavailable)
	require.NoError(t, db.Ping())
	require.NoError(t, s.Close())
}

func TestKeysThatAreTooLongAreInvalid(t *testing.T) {
	s := opened(t, ":memory:")
	for _, name := range []locks.Name{{Tenant: "t", Key: string(make([]byte, 10_000))}, {Tenant: string(make([]byte, 10_000)), Key: "k"}} {
		_, err := s.Acquire(t.Context(), name, []locks.Request{request("a")})
		require.ErrorIs(t, err, locks.ErrValidation)
		_, err = s.Get(t.Context(), name)
		require.ErrorIs(t, err, locks.ErrValidation)
	}
}
