package redisstore

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A server before 7.0 does not know flags of scripts. A newer one treats scripts without
// flags as that did.
func TestAFullServerOfAnOlderVersionSettlesWhatItHas(t *testing.T) {
	path, err := exec.LookPath("redis-server")
	require.NoError(t, err)
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(path, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "yes")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	defer func() { assert.NoError(t, client.Close()) }()
	require.Eventually(t, func() bool { return client.Ping(ctx).Err() == nil }, 5*time.Minute, 10*time.Millisecond)
	s, err := New(ctx, client)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	s.scripts = load(false)
	add := func(id string) error {
		_, err := s.Enqueue(ctx, "q", []taskqueue.Task{{ID: id, Type: "t", MaxFailures: 1, MaxCrashes: 1}})
		return err
	}
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, add(id))
	}
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
	err = add("d")
	require.Error(t, err)
	assert.Contains(t, err.Error(), "OOM")
	got, err := s.Claim(ctx, store.ClaimRequest{Queue: "q", Worker: "w", Nonce: "1", Max: 2, Lease: time.Minute})
	require.NoError(t, err)
	require.Len(t, got.Tasks, 2)
	run := got.Tasks[0]
	_, err = s.Extend(ctx, store.ExtendRequest{Queue: "q", Worker: "w", Lease: time.Hour, Refs: []store.Ref{{ID: run.ID, Token: run.Token}}, Progress: map[string][]byte{run.ID: []byte("half")}})
	require.NoError(t, err)
	r, err := s.Settle(ctx, "q", []store.Outcome{{Ref: store.Ref{ID: run.ID, Token: run.Token}, Kind: store.Succeeded, Result: []byte("r")}})
	require.NoError(t, err)
	assert.Equal(t, []store.SettleResult{store.Settled}, r)
	did, err := s.Act(ctx, "q", got.Tasks[1].ID, store.ActCancel)
	require.NoError(t, err)
	assert.True(t, did)
	did, err = s.Configure(ctx, "q", taskqueue.Settings{}, taskqueue.Settings{Paused: true})
	require.NoError(t, err)
	assert.True(t, did)
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", "0").Err())
	faults, err := s.Audit(ctx, "q")
	require.NoError(t, err)
	assert.Empty(t, faults)
}
