package redisstore_test

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

// server starts a Redis server for the test, on a socket in a folder of its own.
func server(t testing.TB, settings ...string) *redis.Client {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	require.NoError(t, err, "install it: apt-get install redis-server")
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(path, append([]string{"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "yes"}, settings...)...)
	out := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, patience, 10*time.Millisecond)
	client := clientOf(socket)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// patience bounds waits for what comes for certain, however slow the machine is.
const patience = 5 * time.Minute

// clientOf returns a client of the server at a socket, which takes no answer that comes late for one that is lost.
func clientOf(socket string) *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: socket, ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience, DialTimeout: patience})
}

func TestStore(t *testing.T) {
	client := server(t)
	taskqueuetest.Run(t, func(t *testing.T) taskqueue.Store {
		require.NoError(t, client.FlushAll(context.Background()).Err())
		s, err := redisstore.New(context.Background(), client)
		require.NoError(t, err)
		return s
	})
}

func TestWorkers(t *testing.T) {
	client := server(t)
	taskqueuetest.RunWorkers(t, func(t *testing.T) taskqueue.Store {
		s, err := redisstore.New(context.Background(), client, redisstore.Prefix(t.Name()))
		require.NoError(t, err)
		return s
	})
}
