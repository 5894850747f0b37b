package etcdstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// leader returns the member of a cluster that leads.
func leader(t *testing.T, client *clientv3.Client, members []*servers.Server) *servers.Server {
	for {
		for _, m := range members {
			status, err := client.Status(t.Context(), m.Address)
			if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
				return m
			}
		}
	}
}

// TestAHolderWhoseMemberLedAndStandsStillIsToldBeforeAnotherHasTheLock: the holder knows no other
// member than the leader, which stands still for longer than the lease, and goes on as one that
// leads no longer.
func TestAHolderWhoseMemberLedAndStandsStillIsToldBeforeAnotherHasTheLock(t *testing.T) {
	members := servers.EtcdCluster(t, 3)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{members[0].Address, members[1].Address, members[2].Address}})
	require.NoError(t, err)
	old := leader(t, client, members)
	require.NoError(t, client.Close())
	rest := ""
	for _, m := range members {
		if m != old {
			rest = "etcd://" + m.Address
		}
	}
	first, err := locks.New(store(t, "etcd://"+old.Address), locks.Lease(2*time.Second))
	require.NoError(t, err)
	second, err := locks.New(store(t, rest), locks.Lease(2*time.Second))
	require.NoError(t, err)
	begun, ended := make(chan context.Context), make(chan error, 1)
	go func() {
		ended <- first.With(t.Context(), "k", func(ctx context.Context) error {
			begun <- ctx
			<-ctx.Done()
			return nil
		})
	}()
	holder := <-begun
	old.Pause()
	require.NoError(t, second.With(t.Context(), "k", func(ctx context.Context) error {
		require.Error(t, holder.Err(), "two believe")
		require.Greater(t, locks.From(ctx).Token(), locks.From(holder).Token())
		old.Resume()
		return nil
	}))
	var lost *locks.LostError
	require.ErrorAs(t, <-ended, &lost)
}
