package redisstore_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
	"github.com/ambit-go/ambit/locks/redisstore"
)

// cluster starts a cluster of one node. It refuses a step on keys of two slots, as all do.
func cluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	server := servers.Redis(t, "--cluster-enabled", "yes")
	node := connect(t, server)
	require.NoError(t, node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	require.Eventually(t, func() bool {
		info, err := node.ClusterInfo(t.Context()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	}, time.Minute, 10*time.Millisecond)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{server.Address}, PoolSize: 10, PoolTimeout: time.Minute, // a machine that is busy is slow
	})
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client
}

func TestTheLocksOfATenantAreInManySlotsOfACluster(t *testing.T) {
	const n = 300
	ctx, client := t.Context(), cluster(t)
	made, err := redisstore.New(ctx, client, redisstore.Warn(func(text string) { t.Error(text) }))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, made.Close()) })
	m, err := locks.New(made, locks.Retention(time.Microsecond))
	require.NoError(t, err)
	var holds []*locks.Hold
	var renewals []locks.Renewal
	tokens := map[string]int64{}
	for i := range n {
		h, err := m.Acquire(ctx, fmt.Sprintf("k%03d", i), locks.LeaseFor(time.Hour))
		require.NoError(t, err)
		holds, tokens[h.Key()] = append(holds, h), h.Token()
		name := locks.Name{Tenant: "default", Key: h.Key()}
		renewals = append(renewals, locks.Renewal{Name: name, Ref: locks.Ref{Version: h.Version()}, Lease: time.Hour})
	}
	slots := map[int64]bool{}
	keys, err := client.Keys(ctx, "lk:*:r").Result()
	require.NoError(t, err)
	require.Len(t, keys, n)
	for _, key := range keys {
		slot, err := client.ClusterKeySlot(ctx, key).Result()
		require.NoError(t, err)
		slots[slot] = true
	}
	require.Greater(t, len(slots), 48)
	require.LessOrEqual(t, len(slots), 64)

	results, err := made.Renew(ctx, renewals)
	require.NoError(t, err)
	for _, r := range results {
		require.Equal(t, locks.Extended, r.Verdict)
	}
	after := ""
	for page := range 3 {
		records, err := m.List(ctx, after, 100)
		require.NoError(t, err)
		require.Len(t, records, 100)
		for i, r := range records {
			require.Equal(t, fmt.Sprintf("k%03d", 100*page+i), r.Key)
		}
		after = records[99].Key
	}
	waits := make(chan error, 1)
	go func() { waits <- m.With(context.Background(), "k000", func(context.Context) error { return nil }) }()
	for _, h := range holds {
		require.NoError(t, h.Release(ctx))
	}
	require.NoError(t, <-waits)
	for gone := 0; gone < n; { // each call for a new record had two others go, none of which was due
		purged, err := m.Purge(ctx, 100)
		require.NoError(t, err)
		require.LessOrEqual(t, purged, 100)
		gone += purged
	}
	records, err := m.List(ctx, "", 10)
	require.NoError(t, err)
	require.Empty(t, records)
	for key, token := range tokens {
		h, err := m.Acquire(ctx, key)
		require.NoError(t, err)
		require.Greater(t, h.Token(), token)
		require.NoError(t, h.Release(ctx))
	}
}

func TestLeasesOfAClusterAreRenewedWhileTheUserKeepsAllConnectionsOfThePool(t *testing.T) {
	ctx, client := t.Context(), cluster(t)
	made, err := redisstore.New(ctx, client, redisstore.Warn(func(text string) { t.Error(text) }))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, made.Close()) })
	name := locks.Name{Tenant: "t", Key: "k"}
	_, err = made.Acquire(ctx, name, []locks.Request{{ID: "a", Version: "a", Kind: locks.Mutex, Lease: time.Hour}})
	require.NoError(t, err)
	require.NoError(t, client.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error {
		for range node.Options().PoolSize {
			c := node.Conn()
			if err := c.Ping(ctx).Err(); err != nil {
				return err
			}
			t.Cleanup(func() { assert.NoError(t, c.Close()) })
		}
		return nil
	}))
	limited, cancel := context.WithTimeout(ctx, 20*time.Second) // less than what one who wants a connection waits for
	defer cancel()
	results, err := made.Renew(limited, []locks.Renewal{{Name: name, Ref: locks.Ref{ID: "a"}, Lease: time.Hour}})
	require.NoError(t, err)
	require.Equal(t, locks.Extended, results[0].Verdict)
}

// A downHook has the parts of a cluster that hold none of up fail, when those have answered.
type downHook struct {
	redis.Hook
	up       string
	answered chan struct{}
}

func (h downHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h downHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h downHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		switch {
		case len(args) < 4 || !strings.HasPrefix(fmt.Sprint(args[0]), "eval"):
			return next(ctx, cmd)
		case strings.Contains(fmt.Sprint(args[3:]...), h.up):
			err := next(ctx, cmd)
			if err == nil { // else the server does not know the script yet
				close(h.answered)
			}
			return err
		}
		select {
		case <-h.answered:
		case <-ctx.Done():
		}
		cmd.SetErr(io.ErrUnexpectedEOF)
		return cmd.Err()
	}
}

// Nodes of a cluster that do not answer have no lease on another node lost.
func TestLeasesOfTheNodesOfAClusterThatAnswerAreRenewed(t *testing.T) {
	ctx, client := t.Context(), cluster(t)
	made, err := redisstore.New(ctx, client, redisstore.Warn(func(text string) { t.Error(text) }))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, made.Close()) })
	var renewals []locks.Renewal
	for _, key := range []string{"a", "b", "c", "up", "d", "e", "f"} {
		name := locks.Name{Tenant: "t", Key: key}
		_, err = made.Acquire(ctx, name, []locks.Request{{ID: "a", Version: "a", Kind: locks.Mutex, Lease: time.Hour}})
		require.NoError(t, err)
		renewals = append(renewals, locks.Renewal{Name: name, Ref: locks.Ref{ID: "a"}, Lease: time.Hour})
	}
	client.AddHook(downHook{up: ":up:", answered: make(chan struct{})})
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	results, err := made.Renew(limited, renewals)
	require.NoError(t, err)
	for i, r := range results {
		want := locks.Skipped
		if renewals[i].Key == "up" {
			want = locks.Extended
		}
		assert.Equal(t, want, r.Verdict, renewals[i].Key)
	}
	_, err = made.Renew(limited, renewals[:3])
	require.ErrorIs(t, err, locks.ErrUnavailable, "none has answered")
}
