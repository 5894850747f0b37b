package redisstore_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
	"github.com/ambit-go/ambit/taskqueue/store"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

func TestANewerFormatIsRefused(t *testing.T) {
	client := server(t)
	enqueue(t, open(t, client), task("a"))
	assert.Equal(t, "1", client.Get(ctx, "tq:format").Val())
	open(t, client)
	require.NoError(t, client.Set(ctx, "tq:format", "99", 0).Err())
	_, err := redisstore.New(ctx, client)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "format 99, and this program knows formats up to 2: use a newer program")
	require.NoError(t, client.Set(ctx, "tq:format", "mine", 0).Err())
	_, err = redisstore.New(ctx, client)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "redisstore.Prefix")
	_, err = redisstore.New(ctx, client, redisstore.Prefix("other"))
	require.NoError(t, err)
}

func TestNoErrorHasThePassword(t *testing.T) {
	client := server(t, "--requirepass", "s3cret/word")
	socket := client.Options().Addr
	for name, url := range map[string]string{
		"wrong":         "unix://:s3cret-word@" + socket,
		"of somebody":   "unix://somebody:s3cret-word@" + socket,
		"bad port":      "redis://:s3cret-word@127.0.0.1:x/0",
		"not escaped":   "redis://:s3cret#word@127.0.0.1:1/0",
		"a slash":       "redis://:s3cret/word@127.0.0.1:1/0",
		"a question":    "redis://:s3cret?word=s3cret@127.0.0.1:1/0",
		"nobody there":  "redis://:s3cret-word@127.0.0.1:1/0",
		"not a number":  "redis://:s3cret-word@127.0.0.1:1/x",
		"bad escape":    "redis://:s3cret%zzword@127.0.0.1:1/0",
		"another word":  "redisx://:s3cret-word@127.0.0.1:1/0",
		"no such field": "redis://:s3cret-word@127.0.0.1:1/0?s3cret=1",
	} {
		c, cancel := context.WithTimeout(ctx, 20*time.Second)
		_, err := taskqueue.Open(c, url)
		cancel()
		require.Error(t, err, name)
		if name != "no such field" { // that is not where a password is
			assert.NotContains(t, err.Error(), "s3cret", name)
		}
	}
	s, err := taskqueue.Open(ctx, "unix://:s3cret%2Fword@"+socket)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// A server that has been started again answers before it has loaded what it has stored.
func TestAServerThatIsLoadingIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	kill := daemon(t, dir)
	client := clientOf(filepath.Join(dir, "s"))
	t.Cleanup(func() { _ = client.Close() })
	s := open(t, client)
	for i := range 20 {
		enqueue(t, s, task(fmt.Sprint(i)))
	}
	for i := range 40 { // between keys that it loads it answers
		require.NoError(t, client.Set(ctx, fmt.Sprint("other", i), make([]byte, 4096), 0).Err())
	}
	require.NoError(t, client.BgRewriteAOF(ctx).Err())
	require.Eventually(t, func() bool {
		info := client.Info(ctx, "persistence").Val()
		return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0")
	}, patience, 10*time.Millisecond)
	kill()
	path, err := exec.LookPath("redis-server")
	require.NoError(t, err)
	cmd := exec.Command(path, "--port", "0", "--unixsocket", filepath.Join(dir, "s"), "--dir", dir, "--save", "", "--appendonly", "yes",
		"--key-load-delay", "1000000", "--loading-process-events-interval-bytes", "1024") // a minute and more, unless it is told to make haste
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	loading := func() bool { return strings.Contains(client.Info(ctx, "persistence").Val(), "\nloading:1") }
	require.Eventually(t, loading, patience, time.Millisecond)
	var warned []string
	again, err := redisstore.New(ctx, client, redisstore.Warn(func(text string) {
		if warned = append(warned, text); strings.Contains(text, "loading") {
			assert.NoError(t, client.ConfigSet(ctx, "key-load-delay", "0").Err())
		}
	}))
	require.NoError(t, err)
	defer func() { assert.NoError(t, again.Close()) }()
	assert.Contains(t, strings.Join(warned, "\n"), "loading")
	_, err = s.Get(ctx, "q", "1")
	require.NoError(t, err)
	assert.Len(t, claim(t, again, 100, time.Minute), 20)
	audited(t, again)
}

// cluster starts a cluster of one node, which has all slots.
func cluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	node, _ := tcpServer(t, "--cluster-enabled", "yes", "--cluster-port", clitest.FreePort(t))
	require.NoError(t, node.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err())
	require.Eventually(t, func() bool {
		return strings.Contains(node.Do(ctx, "CLUSTER", "INFO").String(), "cluster_state:ok")
	}, patience, 10*time.Millisecond)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{node.Options().Addr}})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Every key that a script uses is declared, and in one slot: a cluster refuses it else.
func TestStoreOnACluster(t *testing.T) {
	client := cluster(t)
	taskqueuetest.Run(t, func(t *testing.T) taskqueue.Store {
		require.NoError(t, client.FlushAll(ctx).Err())
		s, err := redisstore.New(ctx, client)
		require.NoError(t, err)
		return s
	})
}

// Names of queues have braces, too.
func TestQueuesOfAClusterAreInOneSlotEach(t *testing.T) {
	client := cluster(t)
	s, err := redisstore.New(ctx, client)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	for _, queue := range []string{"a", "}", "{", "{}", "a{b}c", "{a}{b}", "ä b", "%7D"} {
		_, err := s.Enqueue(ctx, queue, []taskqueue.Task{task("1")})
		require.NoError(t, err, queue)
		got, err := s.Claim(ctx, store.ClaimRequest{Queue: queue, Worker: "w", Nonce: queue, Max: 1, Lease: time.Minute})
		require.NoError(t, err, queue)
		assert.Len(t, got.Tasks, 1)
	}
	all, err := s.Queues(ctx)
	require.NoError(t, err)
	assert.Len(t, all, 8)
	keys, err := client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	slots := map[int64]bool{}
	for _, key := range keys {
		if strings.HasPrefix(key, "tq:{") {
			slots[client.ClusterKeySlot(ctx, key).Val()] = true
		}
	}
	assert.Len(t, slots, 8)
}

func TestAClusterThatEvictsIsRefused(t *testing.T) {
	client := cluster(t)
	require.NoError(t, client.ConfigSet(ctx, "maxmemory-policy", "volatile-lru").Err())
	_, err := redisstore.New(ctx, client)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "noeviction")
}

func TestAClusterByItsURL(t *testing.T) {
	client := cluster(t)
	s, err := taskqueue.Open(ctx, "redis+cluster://"+client.Options().Addrs[0])
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	_, err = s.Enqueue(ctx, "q", []taskqueue.Task{task("a")})
	require.NoError(t, err)
	n, err := client.ZCard(ctx, "tq:{q}:due:0").Result()
	require.NoError(t, err)
	assert.EqualValues(t, 1, n)
}

// The sentinel is asked where the master is, and again when that has changed.
func TestTheMasterOfASentinelByItsURL(t *testing.T) {
	first, firstPort := tcpServer(t)
	second, secondPort := tcpServer(t)
	require.NoError(t, second.ReplicaOf(ctx, "127.0.0.1", firstPort).Err())
	sentinel := sentinelOf(t, firstPort)
	s, err := taskqueue.Open(ctx, "redis+sentinel://"+sentinel+"/0?master_name=mymaster")
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	_, err = s.Enqueue(ctx, "q", []taskqueue.Task{task("a")})
	require.NoError(t, err)
	_, err = open(t, first).Get(ctx, "q", "a")
	assert.NoError(t, err)

	asked := redis.NewSentinelClient(&redis.Options{Addr: sentinel})
	defer func() { assert.NoError(t, asked.Close()) }()
	require.Eventually(t, func() bool { return asked.Failover(ctx, "mymaster").Err() == nil }, patience, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		at, err := asked.GetMasterAddrByName(ctx, "mymaster").Result()
		return err == nil && at[1] == secondPort
	}, patience, 50*time.Millisecond)
	moved := open(t, second)
	require.Eventually(t, func() bool { // what the old master still takes is lost with it
		_, err := s.Enqueue(ctx, "q", []taskqueue.Task{task("b")})
		if err == nil {
			_, err = moved.Get(ctx, "q", "b")
		}
		return err == nil
	}, patience, 50*time.Millisecond)

	_, err = taskqueue.Open(ctx, "redis+sentinel://"+sentinel+"/0")
	assert.ErrorContains(t, err, "master_name")
}

// tcpServer starts a server on a port of its own.
func tcpServer(t *testing.T, args ...string) (client *redis.Client, port string) {
	t.Helper()
	port = clitest.FreePort(t)
	args = append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", "", "--appendonly", "yes"}, args...)
	return started(t, port, args...), port
}

// sentinelOf starts a sentinel that looks after the master at a port, and returns its address.
func sentinelOf(t *testing.T, master string) string {
	t.Helper()
	port, file := clitest.FreePort(t), filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 %s 1\nsentinel down-after-milliseconds mymaster 60000\n", port, master)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return started(t, port, file, "--sentinel").Options().Addr
}

// started starts redis-server, which is told to listen at a port, and waits until it answers.
func started(t *testing.T, port string, args ...string) *redis.Client {
	t.Helper()
	cmd := exec.Command("redis-server", args...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	t.Cleanup(func() { _ = client.Close() })
	require.Eventually(t, func() bool { return client.Ping(ctx).Err() == nil }, patience, 10*time.Millisecond)
	return client
}
