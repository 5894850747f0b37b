package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
	"github.com/ambit-go/ambit/locks/redisstore"
)

// as returns the store of a user with such rights, and what it warns of.
func as(t *testing.T, s *servers.Server, user string, rules ...any) (locks.Store, *[]string) {
	require.NoError(t, connect(t, s).Do(t.Context(), append([]any{"ACL", "SETUSER", user, "on", ">pw"}, rules...)...).Err())
	client := redis.NewClient(&redis.Options{Addr: s.Address, Username: user, Password: "pw"})
	t.Cleanup(func() { _ = client.Close() })
	warned := new([]string)
	st, err := redisstore.New(t.Context(), client, redisstore.Warn(func(text string) { *warned = append(*warned, text) }))
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return st, warned
}

func TestWhatAScriptMayNotIsInvalid(t *testing.T) {
	s := servers.Redis(t)
	for user, rules := range map[string][]any{
		"time": {"+@all", "-time", "~*", "&*"}, "keys": {"+@all", "~other:*", "&*"}, "write": {"+@all", "-hset", "~*", "&*"},
	} {
		t.Run(user, func(t *testing.T) {
			st, _ := as(t, s, user, rules...)
			m, err := locks.New(st)
			require.NoError(t, err)
			_, err = m.Acquire(t.Context(), "k", locks.NoWait())
			require.ErrorIs(t, err, locks.ErrValidation)
		})
	}
}

// TestAUserWithoutChannelsHasAllSteps: Redis 7 gives none by default.
func TestAUserWithoutChannelsHasAllSteps(t *testing.T) {
	st, warned := as(t, servers.Redis(t), "app", "~*", "+@all", "resetchannels")
	require.Contains(t, (*warned)[len(*warned)-1], "may not publish")
	name := locks.Name{Tenant: "t", Key: "k"}
	for _, id := range []string{"a", "b"} {
		_, err := st.Acquire(t.Context(), name, []locks.Request{{ID: id, Version: id, Owner: "o", Kind: locks.Mutex, Lease: 1e9, Wait: true}})
		require.NoError(t, err)
	}
	ok, err := st.Release(t.Context(), name, locks.Ref{ID: "a"}, nil)
	require.NoError(t, err)
	require.True(t, ok)
}

func TestNothingIsDoneAfterCloseThoughTheClientIsOpen(t *testing.T) {
	server := servers.Redis(t)
	options, err := redis.ParseURL(server.URL)
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	s, err := redisstore.New(t.Context(), client, redisstore.Warn(func(string) {}))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = s.Acquire(t.Context(), locks.Name{Tenant: "t", Key: "k"}, []locks.Request{{ID: "a", Kind: locks.Mutex, Lease: time.Second}})
	_, err2 := s.List(t.Context(), "t", "", 1)
	_, err3 := s.Purge(t.Context(), "t", 1)
	for _, err := range []error{err, err2, err3} {
		require.ErrorIs(t, err, locks.ErrClosed)
		require.ErrorIs(t, err, locks.ErrUnavailable)
	}
	require.NoError(t, client.Ping(t.Context()).Err())
}

func TestAClientOrAnOptionThatIsNilIsAClearError(t *testing.T) {
	var none *redis.Client
	_, err := redisstore.New(t.Context(), none)
	require.ErrorIs(t, err, locks.ErrValidation)
	_, err = redisstore.New(t.Context(), nil)
	require.ErrorIs(t, err, locks.ErrValidation)
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = client.Close() }()
	_, err = redisstore.New(t.Context(), client, nil)
	require.ErrorIs(t, err, locks.ErrValidation)
}
