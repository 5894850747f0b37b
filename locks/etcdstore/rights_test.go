package etcdstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// TestAUserNeedsThePrefixAndNothingElse also of one tenant alone.
func TestAUserNeedsThePrefixAndNothingElse(t *testing.T) {
	server := servers.Etcd(t)
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Address}})
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	ctx := t.Context()
	add := func(user, prefix string) {
		_, err := root.UserAdd(ctx, user, "pw")
		require.NoError(t, err)
		_, err = root.RoleAdd(ctx, user)
		require.NoError(t, err)
		all := clientv3.PermissionType(clientv3.PermReadWrite)
		_, err = root.RoleGrantPermission(ctx, user, prefix, clientv3.GetPrefixRangeEnd(prefix), all)
		require.NoError(t, err)
		_, err = root.UserGrantRole(ctx, user, user)
		require.NoError(t, err)
	}
	add("root", "\x00")
	_, err = root.UserGrantRole(ctx, "root", "root")
	require.NoError(t, err)
	add("app", "locks/")
	add("tenant", "locks/4:acme/")
	add("other", "elsewhere/")
	_, err = root.AuthEnable(ctx)
	require.NoError(t, err)
	for user, may := range map[string]bool{"app": true, "tenant": true, "other": false} {
		s, err := locks.Open(ctx, "etcd://"+user+":pw@"+server.Address)
		require.NoError(t, err)
		m, err := locks.New(s, locks.Tenant("acme"), locks.Lease(2*time.Second))
		require.NoError(t, err)
		hold, err := m.Acquire(ctx, "k")
		if may {
			require.NoError(t, err)
			require.NoError(t, hold.Extend(ctx, 4*time.Second))
			_, err = m.List(ctx, "", 10)
			require.NoError(t, err)
			_, err = m.Revoke(ctx, "k")
			require.NoError(t, err)
			require.NoError(t, hold.Release(ctx))
			require.NoError(t, m.Delete(ctx, "k", ""))
		} else {
			require.ErrorIs(t, err, locks.ErrValidation)
			require.NotErrorIs(t, err, locks.ErrUnavailable)
		}
		require.NoError(t, s.Close())
	}
	_, err = locks.Open(ctx, "etcd://app:wrong@"+server.Address)
	require.ErrorIs(t, err, locks.ErrValidation)
	require.NotContains(t, err.Error(), "wrong")
}
