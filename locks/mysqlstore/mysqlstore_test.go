package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

func TestMain(m *testing.M) {
	lockstest.Main()
	goleak.VerifyTestMain(servers.Ending{M: m})
}

// database makes one on the server of the package, and returns the URL of it.
func database(t testing.TB) string {
	t.Helper()
	s := servers.Shared(t, servers.MariaDB)
	db := asRoot(t, s.URL)
	defer func() { _ = db.Close() }()
	name := "db_" + lockstest.ID()
	for _, statement := range []string{"CREATE DATABASE " + name, "GRANT ALL ON " + name + ".* TO locks@'127.0.0.1'"} {
		_, err := db.Exec(statement)
		require.NoError(t, err)
	}
	return strings.TrimSuffix(s.URL, "/locks") + "/" + name
}

func asRoot(t testing.TB, url string) *sql.DB {
	t.Helper()
	config, err := parse(url)
	require.NoError(t, err)
	config.User, config.Passwd, config.DBName = "root", "", ""
	db, err := connect(config)
	require.NoError(t, err)
	return db
}

func TestStore(t *testing.T) {
	url := database(t)
	lockstest.Run(t, func(t testing.TB) locks.Store { return opened(t, url) })
}

// TestStoreOnPoolsOfUsers has pools of one connection with settings that a user may have.
func TestStoreOnPoolsOfUsers(t *testing.T) {
	url := database(t)
	for name, change := range map[string]func(c *mysql.Config){
		"serializable":         func(c *mysql.Config) { c.Params["tx_isolation"] = "'SERIALIZABLE'" },
		"interpolated":         func(c *mysql.Config) { c.InterpolateParams = true },
		"found rows":           func(c *mysql.Config) { c.ClientFoundRows = true },
		"elsewhere":            func(c *mysql.Config) { c.Params["time_zone"] = "'+05:30'" },
		"ANSI quotes":          func(c *mysql.Config) { c.Params["sql_mode"] = "'ANSI,TRADITIONAL'" },
		"no backslash escapes": func(c *mysql.Config) { c.Params["sql_mode"] = "'NO_BACKSLASH_ESCAPES'" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lockstest.RunAgain(t, func(t testing.TB) locks.Store { return made(t, pool(t, url, change)) })
		})
	}
}

func opened(t testing.TB, url string) *Store {
	t.Helper()
	s, err := locks.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*Store)
}

// pool is what a user has. change may set what is not usual.
func pool(t testing.TB, url string, change func(c *mysql.Config)) *sql.DB {
	t.Helper()
	config, err := parse(url)
	require.NoError(t, err)
	config.Params = map[string]string{}
	change(config)
	db, err := connect(config)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func plainPool(t testing.TB, url string) *sql.DB { return pool(t, url, func(*mysql.Config) {}) }

func made(t testing.TB, db *sql.DB) *Store {
	t.Helper()
	s, err := New(t.Context(), db)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func name(key string) locks.Name { return locks.Name{Tenant: "t", Key: key} }

func request(id string) locks.Request {
	return locks.Request{ID: id, Version: "v-" + id, Owner: "owner", Kind: locks.Mutex, Lease: time.Hour, Wait: true}
}

func take(t testing.TB, s locks.Store, key string, requests ...locks.Request) []locks.Answer {
	t.Helper()
	turn, err := s.Acquire(t.Context(), name(key), requests)
	require.NoError(t, err)
	return turn.Answers
}

// TestALeaseThatAUserHasReadForShareHoldsUpNoOther: fence.Same reads the lease in the
// user's own transaction. Renewing all leases must not wait for that one.
func TestALeaseThatAUserHasReadForShareHoldsUpNoOther(t *testing.T) {
	url := database(t)
	s := opened(t, url)
	var all []locks.Renewal
	for i := range 20 {
		q := request(fmt.Sprint("id-", i))
		if i%4 == 3 {
			q.Kind, q.Size = locks.Semaphore, 3
		}
		key := fmt.Sprint("key ", i)
		require.True(t, take(t, s, key, q)[0].Granted)
		all = append(all, locks.Renewal{Name: name(key), Ref: locks.Ref{ID: q.ID}, Lease: time.Hour})
	}
	tx, err := plainPool(t, url).Begin()
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	for _, key := range []string{"key 4", "key 7"} {
		var n int
		require.NoError(t, tx.QueryRow("SELECT 1 FROM lk_resource WHERE tenant = 't' AND `key` = ? LOCK IN SHARE MODE", key).Scan(&n))
	}
	results, err := s.Renew(t.Context(), all)
	require.NoError(t, err)
	for i, r := range results {
		want := locks.Extended
		if i == 4 || i == 7 {
			want = locks.Skipped
		}
		require.Equal(t, want, r.Verdict, "renewal %d", i)
	}
	// Alone it waits: for longer than innodb_lock_wait_timeout, which is repeated.
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	_, err = s.Renew(ctx, all[4:5])
	require.ErrorIs(t, err, locks.ErrUnavailable)
	time.AfterFunc(10*time.Millisecond, func() { _ = tx.Rollback() })
	for _, i := range []int{4, 7} {
		results, err := s.Renew(t.Context(), all[i:i+1])
		require.NoError(t, err)
		require.Equal(t, locks.Extended, results[0].Verdict)
	}
}

// TestADeadlockIsRepeated has the store wait for a row that a transaction has, which then
// waits for one that the store has.
func TestADeadlockIsRepeated(t *testing.T) {
	url := database(t)
	s := opened(t, url)
	take(t, s, "k", request("holder"))
	q := request("waiter")
	take(t, s, "k", q)
	times := 0
	step := func(int64, *book.Resource) { times++ }
	for range 3 { // the server chooses which of the two it gives up
		tx, err := plainPool(t, url).Begin()
		require.NoError(t, err)
		_, err = tx.Exec("UPDATE lk_entry SET owner = x'61'") // without the row of the resource, as the store never does
		require.NoError(t, err)
		var wg sync.WaitGroup
		before := times
		wg.Go(func() {
			require.NoError(t, s.db.Step(t.Context(), name("k"), false, func(now int64, r *book.Resource) {
				step(now, r)
				r.Entries[1].Expires++ // it will be written
			}))
		})
		waiting(t, url)
		_, err = tx.Exec("UPDATE lk_resource SET updated_by = x'61'")
		if err == nil {
			err = tx.Commit()
		} else {
			_ = tx.Rollback()
		}
		wg.Wait()
		if err == nil && times == before+2 {
			return // it was the store, which has done it again
		}
	}
	require.Positive(t, times)
	t.Log("the server has always given up the other one")
}

// waiting waits until a transaction waits for a row. The server looks at that anew only when
// nobody has asked for a tenth of a second: to ask more often brings the old answer for ever.
func waiting(t testing.TB, url string) {
	db := asRoot(t, url)
	defer func() { _ = db.Close() }()
	for range 300 {
		var n int
		if err := db.QueryRow("SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'").Scan(&n); err != nil || n > 0 {
			require.NoError(t, err)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	require.Fail(t, "no transaction waits for a row")
}

// TestAStepThatWasStoppedInTheMiddleHoldsNobodyUp leaves a transaction open that has the
// row of a lock, as a process does that is stopped in the middle.
func TestAStepThatWasStoppedInTheMiddleHoldsNobodyUp(t *testing.T) {
	url := database(t)
	s, stopped := opened(t, url), opened(t, url)
	take(t, s, "k", request("holder"))
	in, out, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		first := true
		ended <- stopped.db.Step(t.Context(), name("k"), false, func(_ int64, r *book.Resource) {
			r.UpdatedBy = "stopped"
			if first {
				first = false
				close(in)
				<-out
			}
		})
	}()
	<-in
	released, err := s.Release(t.Context(), name("k"), locks.Ref{ID: "holder"}, nil)
	require.NoError(t, err, "the server has ended the transaction")
	require.True(t, released)
	close(out)
	require.ErrorIs(t, <-ended, locks.ErrUnavailable)
	require.True(t, take(t, s, "k", request("next"))[0].Granted)
}

func TestASchemaOfANewerVersionIsAnErrorAndStaysAsItIs(t *testing.T) {
	url := database(t)
	opened(t, url)
	db := plainPool(t, url)
	_, err := db.Exec("UPDATE lk_schema SET version = 99")
	require.NoError(t, err)
	_, err = Open(t.Context(), url)
	require.ErrorIs(t, err, locks.ErrValidation)
	require.ErrorContains(t, err, "version 99")
	_, err = New(t.Context(), db)
	require.ErrorIs(t, err, locks.ErrValidation)
	var version int
	require.NoError(t, db.QueryRow("SELECT version FROM lk_schema").Scan(&version))
	require.Equal(t, 99, version)
}

// TestTheTablesOfVersion1BecomeThoseOfThisOne takes away what version 1 did not have.
func TestTheTablesOfVersion1BecomeThoseOfThisOne(t *testing.T) {
	url := database(t)
	first := opened(t, url)
	take(t, first, "old", request("a"))
	_, err := first.Release(t.Context(), name("old"), locks.Ref{ID: "a"}, nil)
	require.NoError(t, err)
	db := plainPool(t, url)
	for _, statement := range []string{
		"DROP INDEX lk_due ON lk_resource", "ALTER TABLE lk_resource DROP COLUMN bucket", "ALTER TABLE lk_resource DROP COLUMN retention_us",
		"ALTER TABLE lk_resource DROP COLUMN due_us", "ALTER TABLE lk_entry DROP COLUMN most", "DROP TABLE lk_floor", "UPDATE lk_schema SET version = 1, deleted = 3000000000000000",
	} {
		_, err := db.Exec(statement)
		require.NoError(t, err)
	}
	s := opened(t, url)
	require.True(t, take(t, s, "old", request("b"))[0].Granted)
	require.Greater(t, take(t, s, "new", request("c"))[0].Grant.Fence, int64(3e15), "the floor of version 1 is that of all")
}

func TestManyMayMakeTheTablesAtOnce(t *testing.T) {
	url := database(t)
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			s, err := Open(t.Context(), url)
			if err == nil {
				err = s.Close()
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
}

func TestASessionWhoseAssignmentsAreSimultaneousIsRefused(t *testing.T) {
	url := database(t)
	_, err := New(t.Context(), pool(t, url, func(c *mysql.Config) { c.Params["sql_mode"] = "'SIMULTANEOUS_ASSIGNMENT'" }))
	require.ErrorIs(t, err, locks.ErrValidation)
}

func TestNoErrorShowsThePassword(t *testing.T) {
	for _, url := range []string{
		"mysql://user:" + servers.Password + "@127.0.0.1:1/app", // nobody listens
		"mysql://user:" + servers.Password + "@127.0.0.1:port/app",
		"mysql://user:" + servers.Password + "%zz@127.0.0.1/app",
		"mysql://user:" + servers.Password + "@127.0.0.1/app?tls=no-such",
		"mysql://user:" + servers.Password + "@127.0.0.1/app?timeout=no-such",
		"mysql:user:" + servers.Password + "@tcp(127.0.0.1:1/app",
		"mysql:user:" + servers.Password + "@tcp(127.0.0.1:1)/app",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := locks.Open(ctx, url)
		cancel()
		require.Error(t, err)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), servers.Password)
	}
}

func TestADataSourceNameOfTheDriverIsAURLToo(t *testing.T) {
	config, err := parse(database(t))
	require.NoError(t, err)
	s := opened(t, "mysql:"+config.FormatDSN())
	require.True(t, take(t, s, "k", request("a"))[0].Granted)
}

func TestCloseEndsTheStoreButNotThePoolOfTheUser(t *testing.T) {
	db := plainPool(t, database(t))
	s := made(t, db)
	_, stop := s.Listen(name("k"))
	defer stop()
	require.NoError(t, s.Close())
	_, err := s.Acquire(t.Context(), name("k"), []locks.Request{request("a")})
	require.True(t, errors.Is(err, locks.ErrClosed) && errors.Is(err, locks.ErrUnavailable), "%v", err)
	require.NoError(t, db.Ping())
}
