package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
	"github.com/ambit-go/ambit/locks/redisstore"
)

func TestMain(m *testing.M) {
	lockstest.Peer = peer
	lockstest.Main()
	goleak.VerifyTestMain(servers.Ending{M: m})
}

func connect(t testing.TB, s *servers.Server) *redis.Client {
	client := redis.NewClient(&redis.Options{Network: s.Network, Addr: s.Address})
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client
}

func store(t testing.TB, s *servers.Server) *redisstore.Store {
	made, err := redisstore.New(context.Background(), connect(t, s), redisstore.Warn(func(text string) { t.Error(text) }))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, made.Close()) })
	return made
}

func TestTheSuite(t *testing.T) {
	server := servers.Redis(t)
	lockstest.Run(t, func(t testing.TB) locks.Store { return store(t, server) })
}

func TestAClosedClientIsAClosedStore(t *testing.T) {
	s := servers.Redis(t)
	client := redis.NewClient(&redis.Options{Network: s.Network, Addr: s.Address})
	made, err := redisstore.New(t.Context(), client, redisstore.Warn(func(string) {}))
	require.NoError(t, err)
	require.NoError(t, client.Close())
	_, err = made.Get(t.Context(), locks.Name{Tenant: "t", Key: "k"})
	require.ErrorIs(t, err, locks.ErrClosed)
	require.ErrorIs(t, err, locks.ErrUnavailable)
	require.NoError(t, made.Close())
}

// TestALockThatTheServerHasForgottenIsLostWhenItComesBack: not at the next renewal, which is
// twenty minutes away.
func TestALockThatTheServerHasForgottenIsLostWhenItComesBack(t *testing.T) {
	server := servers.Redis(t, "--appendonly", "no", "--save", "")
	made, err := redisstore.New(t.Context(), connect(t, server), redisstore.Warn(func(string) {}))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, made.Close()) })
	m, err := locks.New(made, locks.Lease(time.Hour))
	require.NoError(t, err)
	hold, err := m.Acquire(t.Context(), "k")
	require.NoError(t, err)
	channels := func() []string { return connect(t, server).PubSubChannels(t.Context(), "*").Val() }
	for len(channels()) == 0 {
		time.Sleep(time.Millisecond)
	}
	server.Restart()
	select {
	case <-hold.Done():
	case <-time.After(time.Minute):
		require.FailNow(t, "it is believed to be held")
	}
	var lost *locks.LostError
	require.ErrorAs(t, hold.Err(), &lost)
	require.Equal(t, locks.LostStolen, lost.Reason)
}

// TestLeasesAreRenewedWhileTheUserKeepsAllConnectionsOfThePool: else they are lost though the
// server is well.
func TestLeasesAreRenewedWhileTheUserKeepsAllConnectionsOfThePool(t *testing.T) {
	server := servers.Redis(t)
	client := redis.NewClient(&redis.Options{Network: server.Network, Addr: server.Address, PoolSize: 2, PoolTimeout: time.Second})
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	made, err := redisstore.New(t.Context(), client, redisstore.Warn(func(text string) { t.Error(text) }))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, made.Close()) })
	name := locks.Name{Tenant: "t", Key: "k"}
	_, err = made.Acquire(t.Context(), name, []locks.Request{{ID: "a", Version: "a", Kind: locks.Mutex, Lease: time.Hour}})
	require.NoError(t, err)
	for range 2 {
		c := client.Conn()
		require.NoError(t, c.Ping(t.Context()).Err())
		t.Cleanup(func() { assert.NoError(t, c.Close()) })
	}
	results, err := made.Renew(t.Context(), []locks.Renewal{{Name: name, Ref: locks.Ref{ID: "a"}, Lease: time.Hour}})
	require.NoError(t, err)
	require.Equal(t, locks.Extended, results[0].Verdict)
}

// TestWhatTheServerWillNeverDoIsInvalid: to ask again does not help.
func TestWhatTheServerWillNeverDoIsInvalid(t *testing.T) {
	s := servers.Redis(t)
	client := connect(t, s)
	require.NoError(t, client.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">reader", "~*", "&*", "+info", "+get").Err())
	warned := redisstore.Warn(func(string) {})
	for _, user := range []string{"reader", "nobody"} {
		as := redis.NewClient(&redis.Options{Network: s.Network, Addr: s.Address, Username: user, Password: "reader"})
		t.Cleanup(func() { assert.NoError(t, as.Close()) })
		made, err := redisstore.New(t.Context(), as, warned)
		if err == nil {
			_, err = made.Acquire(t.Context(), locks.Name{Tenant: "t", Key: "k"}, []locks.Request{{ID: "a", Kind: locks.Mutex, Lease: time.Second}})
			require.NoError(t, made.Close())
		}
		require.ErrorIs(t, err, locks.ErrValidation)
		require.NotErrorIs(t, err, locks.ErrUnavailable)
	}
}

// TestSettingsThatMayNotBeReadAreNotTakenForWrong: hosted servers have no CONFIG, and it may
// be that INFO says nothing, either.
func TestSettingsThatMayNotBeReadAreNotTakenForWrong(t *testing.T) {
	var texts []string
	warned := redisstore.Warn(func(text string) { texts = append(texts, text) })
	hosted := servers.Redis(t, "--rename-command", "CONFIG", "")
	made, err := redisstore.New(t.Context(), connect(t, hosted), warned)
	require.NoError(t, err)
	require.NoError(t, made.Close())
	require.Empty(t, texts)

	unsafe := servers.Redis(t, "--rename-command", "CONFIG", "", "--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
	made, err = redisstore.New(t.Context(), connect(t, unsafe), warned)
	require.NoError(t, err)
	require.NoError(t, made.Close())
	require.Len(t, texts, 2)
	require.Contains(t, texts[0], "allkeys-lru")
	require.Contains(t, texts[1], "append-only")
}

// TestAUserNeedsNoMoreThanTheDocsSay is for section "What a user of the database has to be
// allowed" of docs/locks.md.
func TestAUserNeedsNoMoreThanTheDocsSay(t *testing.T) {
	s := servers.Redis(t)
	require.NoError(t, connect(t, s).Do(t.Context(), "ACL", "SETUSER", "app", "on", ">app", "~lk:*", "&lk:*",
		"+@read", "+@write", "+time", "+eval", "+evalsha", "+info", "+publish", "+subscribe").Err())
	as := redis.NewClient(&redis.Options{Network: s.Network, Addr: s.Address, Username: "app", Password: "app"})
	t.Cleanup(func() { assert.NoError(t, as.Close()) })
	made, err := redisstore.New(t.Context(), as, redisstore.Warn(func(text string) { t.Error(text) }))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, made.Close()) })
	m, err := locks.New(made)
	require.NoError(t, err)
	var waits sync.WaitGroup
	require.NoError(t, m.With(t.Context(), "k", func(ctx context.Context) error {
		waits.Go(func() {
			assert.NoError(t, m.With(t.Context(), "k", func(context.Context) error { return nil }))
		})
		for r, err := m.Get(ctx, "k"); r.Waiters == 0; r, err = m.Get(ctx, "k") {
			if err != nil {
				return err
			}
		}
		return nil
	}))
	waits.Wait()
	_, err = m.List(t.Context(), "", 10)
	require.NoError(t, err)
	require.NoError(t, m.Delete(t.Context(), "k", ""))
}
