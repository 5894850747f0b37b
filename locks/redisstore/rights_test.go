package redisstore_test

import (
	"testing"

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
