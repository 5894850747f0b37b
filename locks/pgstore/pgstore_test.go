package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
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
	s := servers.Shared(t, servers.Postgres)
	name := "db_" + lockstest.ID()
	_, err := pool(t, s.URL, func(*pgxpool.Config) {}).Exec(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	return strings.Replace(s.URL, "/postgres?", "/"+name+"?", 1)
}

func TestStore(t *testing.T) {
	url := database(t)
	lockstest.Run(t, func(t testing.TB) locks.Store { return opened(t, url) })
}

// TestStoreOnPoolsOfUsers has pools of one connection with settings that a user may have:
// transactions at another isolation, and no prepared statements.
func TestStoreOnPoolsOfUsers(t *testing.T) {
	url := database(t)
	for name, change := range map[string]func(c *pgxpool.Config){
		"serializable": func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable" },
		"repeatable read": func(c *pgxpool.Config) {
			c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "repeatable read"
		},
		"exec":            func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec },
		"simple protocol": func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol },
		"elsewhere":       func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["timezone"] = "America/New_York" },
	} {
		t.Run(name, func(all *testing.T) {
			pools := shelf{make: func() *pgxpool.Pool { return pool(all, url, change) }}
			lockstest.RunAgain(all, func(t testing.TB) locks.Store { return made(t, pools.take(t)) })
		})
	}
}

// A shelf has the pools that no test uses just now: to connect takes the server longer than most tests do.
type shelf struct {
	make func() *pgxpool.Pool
	mu   sync.Mutex
	free []*pgxpool.Pool
}

// take returns a pool for a test. It goes back when the test has closed the store on it.
func (s *shelf) take(t testing.TB) *pgxpool.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		s.free = append(s.free, s.make())
	}
	last := len(s.free) - 1
	p := s.free[last]
	s.free = s.free[:last]
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, p)
	})
	return p
}

func opened(t testing.TB, url string) *Store {
	t.Helper()
	s, err := locks.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*Store)
}

// pool is what a user has. change may set what is not usual.
func pool(t testing.TB, url string, change func(c *pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.MaxConns = 1
	change(config)
	p, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func made(t testing.TB, p *pgxpool.Pool) *Store {
	t.Helper()
	s, err := New(t.Context(), p)
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
	tx, err := pool(t, url, func(*pgxpool.Config) {}).Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), "SELECT 1 FROM lk_resource WHERE key IN ($1, $2) FOR SHARE", []byte("key 4"), []byte("key 7"))
	require.NoError(t, err)

	results, err := s.Renew(t.Context(), all)
	require.NoError(t, err)
	for i, r := range results {
		want := locks.Extended
		if i == 4 || i == 7 {
			want = locks.Skipped
		}
		require.Equal(t, want, r.Verdict, "renewal %d", i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		blocked(t, url, 1)
		cancel()
	}()
	_, err = s.Renew(ctx, all[4:5]) // alone it waits, until it may not
	require.ErrorIs(t, err, locks.ErrUnavailable)
	rolledBack := make(chan struct{})
	time.AfterFunc(10*time.Millisecond, func() {
		_ = tx.Rollback(context.Background())
		close(rolledBack)
	})
	for _, i := range []int{4, 7} {
		results, err := s.Renew(t.Context(), all[i:i+1])
		require.NoError(t, err)
		require.Equal(t, locks.Extended, results[0].Verdict)
	}
	<-rolledBack
}

// blocked waits until n processes of the server wait for locks.
func blocked(t testing.TB, url string, n int) {
	c, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close(context.Background()) }()
	for range 6000 {
		var waiting int
		err := c.QueryRow(context.Background(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()").Scan(&waiting)
		if err != nil || waiting >= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestAStepThatWasStoppedInTheMiddleHoldsNobodyUp leaves a transaction open that has the
// row of a lock, as a process does that is stopped between its two round trips.
func TestAStepThatWasStoppedInTheMiddleHoldsNobodyUp(t *testing.T) {
	url := database(t)
	s, stopped := opened(t, url), opened(t, url)
	take(t, s, "k", request("holder"))
	in, out, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := stopped.pg.stepped(t.Context(), name("k"), func() { close(in); <-out })
		ended <- err
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
	p := pool(t, url, func(*pgxpool.Config) {})
	_, err := p.Exec(t.Context(), "UPDATE lk_schema SET version = 99")
	require.NoError(t, err)
	_, err = Open(t.Context(), url)
	require.ErrorIs(t, err, locks.ErrValidation)
	require.ErrorContains(t, err, "version 99")
	_, err = New(t.Context(), p)
	require.ErrorIs(t, err, locks.ErrValidation)
	var version int
	require.NoError(t, p.QueryRow(t.Context(), "SELECT version FROM lk_schema").Scan(&version))
	require.Equal(t, 99, version)
}

// TestTheTablesOfVersion1BecomeThoseOfThisOne takes away what version 1 did not have.
func TestTheTablesOfVersion1BecomeThoseOfThisOne(t *testing.T) {
	url := database(t)
	first := opened(t, url)
	take(t, first, "old", request("a"))
	_, err := first.Release(t.Context(), name("old"), locks.Ref{ID: "a"}, nil)
	require.NoError(t, err)
	p := pool(t, url, func(*pgxpool.Config) {})
	for _, statement := range []string{
		"DROP INDEX lk_due", "ALTER TABLE lk_resource DROP COLUMN bucket", "ALTER TABLE lk_resource DROP COLUMN retention_us",
		"ALTER TABLE lk_resource DROP COLUMN due_us", "ALTER TABLE lk_entry DROP COLUMN most", "DROP TABLE lk_floor", "UPDATE lk_schema SET version = 1, deleted = 3000000000000000",
	} {
		_, err := p.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	s := opened(t, url)
	require.True(t, take(t, s, "old", request("b"))[0].Granted)
	require.Greater(t, take(t, s, "new", request("c"))[0].Grant.Fence, int64(3e15), "the floor of version 1 is that of all")
}

func TestManyMayMakeTheTablesAtOnceAndOneWhoMayNotUsesThem(t *testing.T) {
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
	p := pool(t, url, func(*pgxpool.Config) {})
	for _, statement := range []string{
		"CREATE ROLE app LOGIN PASSWORD 'app'", "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON lk_resource, lk_entry, lk_floor TO app", "GRANT SELECT ON lk_schema TO app",
	} {
		_, err := p.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	app := made(t, pool(t, url, func(c *pgxpool.Config) { c.ConnConfig.User, c.ConnConfig.Password = "app", "app" }))
	require.True(t, take(t, app, "k", request("a"))[0].Granted)
}

// TestOneWhoWaitsWhileAnotherMakesTheTablesSeesThem: the server keeps in mind that there was no such table, until it
// reads one.
func TestOneWhoWaitsWhileAnotherMakesTheTablesSeesThem(t *testing.T) {
	url := database(t)
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	_, migrate, err := outdated(t.Context(), c)
	require.NoError(t, err)
	require.True(t, migrate)
	tx, err := c.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(1)") // as if it were given after the tables were made
	require.NoError(t, err)
	opened(t, url)
	_, migrate, err = outdated(t.Context(), tx)
	require.NoError(t, err)
	require.False(t, migrate)
}

func TestNoErrorShowsThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://user:" + servers.Password + "@127.0.0.1:1/app", // nobody listens
		"postgres://user:" + servers.Password + "@127.0.0.1:port/app",
		"postgres://user:" + servers.Password + "%zz@127.0.0.1/app",
		"postgres://user:" + servers.Password + "@/app?sslmode=no-such",
		"postgresql:password=" + servers.Password + " host=127.0.0.1 port=1",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := locks.Open(ctx, url)
		cancel()
		require.Error(t, err)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), servers.Password)
	}
}

// TestHintsComeAgainAfterTheServerWasStartedAgain has the connection of LISTEN lost.
func TestHintsComeAgainAfterTheServerWasStartedAgain(t *testing.T) {
	server := servers.Postgres(t)
	s, other := opened(t, server.URL), opened(t, server.URL)
	hints, stop := s.Listen(name("k"))
	defer stop()
	server.Restart()
	require.Eventually(t, func() bool { // what was done before the restart is there
		_, err := other.Acquire(t.Context(), name("k"), []locks.Request{request("holder")})
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	end := time.After(time.Minute)
	for i := 0; ; i++ {
		id := fmt.Sprint("waiter ", i)
		require.False(t, take(t, s, "k", request(id))[0].Granted)
		_, err := other.Release(t.Context(), name("k"), locks.Ref{ID: "holder"}, nil)
		require.NoError(t, err)
		select {
		case <-hints: // when it listens again, or because of the release
			return
		case <-time.After(time.Second): // it did not listen yet
		case <-end:
			require.FailNow(t, "no hint came")
		}
		_, err = s.Release(t.Context(), name("k"), locks.Ref{ID: id}, nil)
		require.NoError(t, err)
		take(t, other, "k", request("holder"))
	}
}

// TestOnlyWhoWaitsIsConnectedTwice: the connection of LISTEN is there while it is needed.
func TestOnlyWhoWaitsIsConnectedTwice(t *testing.T) {
	url := database(t)
	s := opened(t, url)
	watch := pool(t, url, func(*pgxpool.Config) {})
	listening := func() (n int) {
		require.NoError(t, watch.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND datname = current_database()").Scan(&n))
		return n
	}
	require.Zero(t, listening())
	_, stopA := s.Listen(name("a"))
	_, stopB := s.Listen(name("b"))
	require.Eventually(t, func() bool { return listening() == 1 }, time.Minute, 10*time.Millisecond)
	stopA()
	stopB()
	require.Eventually(t, func() bool { return listening() == 0 }, time.Minute, 10*time.Millisecond)
}

// TestOnlyReleasingDoesNotWaitForTheDisk: a grant or data that the server forgets in a
// crash would be wrong, a release that it forgets is not.
func TestOnlyReleasingDoesNotWaitForTheDisk(t *testing.T) {
	p := pool(t, database(t), func(*pgxpool.Config) {})
	s := made(t, p)
	_, err := p.Exec(t.Context(), `
		CREATE TABLE seen (what text);
		CREATE FUNCTION see() RETURNS trigger AS $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$ LANGUAGE plpgsql;
		CREATE CONSTRAINT TRIGGER see AFTER UPDATE ON lk_resource DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()`)
	require.NoError(t, err)
	take(t, s, "k", request("a")) // the row is made
	release := func(id string, data *string) {
		ok, err := s.Release(t.Context(), name("k"), locks.Ref{ID: id}, data)
		require.NoError(t, err)
		require.True(t, ok)
	}
	release("a", nil)
	take(t, s, "k", request("b"))
	release("b", new(string))
	rows, err := p.Query(t.Context(), "SELECT what FROM seen")
	require.NoError(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"on", "off", "on", "on"}, got, "making, releasing, granting, releasing with data")
}

func TestCloseEndsTheStoreButNotThePoolOfTheUser(t *testing.T) {
	p := pool(t, database(t), func(*pgxpool.Config) {})
	s := made(t, p)
	_, stop := s.Listen(name("k"))
	defer stop()
	require.NoError(t, s.Close())
	_, err := s.Acquire(t.Context(), name("k"), []locks.Request{request("a")})
	require.True(t, errors.Is(err, locks.ErrClosed) && errors.Is(err, locks.ErrUnavailable), "%v", err)
	require.NoError(t, p.Ping(t.Context()))
}

// stepped takes a step in whose middle during is called.
func (b *backend) stepped(ctx context.Context, name locks.Name, during func()) (bool, error) {
	done := false
	err := b.Step(ctx, name, false, func(int64, *book.Resource) {
		during()
		done = true
	})
	return done, err
}
