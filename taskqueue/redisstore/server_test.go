package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

var ctx = context.Background()

func open(t *testing.T, client *redis.Client) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(ctx, client)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func task(id string) taskqueue.Task {
	return taskqueue.Task{ID: id, Type: "t", MaxFailures: 3, MaxCrashes: 3, Payload: []byte(id)}
}

// configure changes all settings of a queue.
func configure(t *testing.T, s taskqueue.Store, set taskqueue.Settings) {
	t.Helper()
	now, err := s.Stats(ctx, "q")
	require.NoError(t, err)
	done, err := s.Configure(ctx, "q", now.Settings, set)
	require.NoError(t, err)
	require.True(t, done)
}

func enqueue(t *testing.T, s *redisstore.Store, tasks ...taskqueue.Task) {
	t.Helper()
	_, err := s.Enqueue(ctx, "q", tasks)
	require.NoError(t, err)
}

var nonces int

func claim(t *testing.T, s *redisstore.Store, n int, lease time.Duration) []taskqueue.Info {
	t.Helper()
	nonces++
	got, err := s.Claim(ctx, store.ClaimRequest{Queue: "q", Worker: "w", Nonce: fmt.Sprint(nonces), Max: n, Lease: lease})
	require.NoError(t, err)
	return got.Tasks
}

func settle(t *testing.T, s *redisstore.Store, run taskqueue.Info) {
	t.Helper()
	r, err := s.Settle(ctx, "q", []store.Outcome{{Ref: store.Ref{ID: run.ID, Token: run.Token}, Kind: store.Succeeded}})
	require.NoError(t, err)
	require.Equal(t, []store.SettleResult{store.Settled}, r)
}

func extend(t *testing.T, s *redisstore.Store, run taskqueue.Info, progress string) {
	t.Helper()
	r, err := s.Extend(ctx, store.ExtendRequest{Queue: "q", Worker: "w", Lease: time.Minute,
		Refs: []store.Ref{{ID: run.ID, Token: run.Token}}, Progress: map[string][]byte{run.ID: []byte(progress)}})
	require.NoError(t, err)
	require.Equal(t, []store.ExtendResult{store.Extended}, r)
}

func audited(t *testing.T, s *redisstore.Store) {
	t.Helper()
	faults, err := s.Audit(ctx, "q")
	require.NoError(t, err)
	assert.Empty(t, faults)
}

func TestScriptsThatTheServerHasForgotten(t *testing.T) {
	client := server(t)
	s := open(t, client)
	flush := func() { require.NoError(t, client.ScriptFlush(ctx).Err()) }
	enqueue(t, s, task("a"))
	flush()
	enqueue(t, s, task("b"))
	flush()
	runs := claim(t, s, 2, time.Minute)
	require.Len(t, runs, 2)
	flush()
	extend(t, s, runs[0], "half")
	flush()
	settle(t, s, runs[0])
	flush()
	ok, err := s.Act(ctx, "q", "b", store.ActCancel)
	require.NoError(t, err)
	assert.True(t, ok)
	flush()
	_, err = s.Stats(ctx, "q")
	require.NoError(t, err)
	audited(t, s)
}

func TestAFullServerTakesNoTasksAndSettlesThoseItHas(t *testing.T) {
	client := server(t)
	s := open(t, client)
	enqueue(t, s, task("a"), task("b"), task("c"))
	runs := claim(t, s, 2, time.Minute)
	require.Len(t, runs, 2)
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
	_, err := s.Enqueue(ctx, "q", []taskqueue.Task{task("d")})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "OOM")
	extend(t, s, runs[0], "half")
	settle(t, s, runs[0])
	ok, err := s.Act(ctx, "q", runs[1].ID, store.ActCancel)
	require.NoError(t, err)
	assert.True(t, ok)
	third := claim(t, s, 1, time.Minute)
	require.Len(t, third, 1, "what is there can be worked off")
	settle(t, s, third[0])
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", "0").Err())
	_, err = s.Get(ctx, "q", "d")
	assert.ErrorIs(t, err, taskqueue.ErrNotFound, "nothing half done")
	audited(t, s)
}

func TestAReplicaSaysWhatItIs(t *testing.T) {
	client := server(t)
	s := open(t, client)
	enqueue(t, s, task("a"))
	require.NoError(t, client.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err())
	_, err := s.Enqueue(ctx, "q", []taskqueue.Task{task("b")})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "replica")
	_, err = s.Claim(ctx, store.ClaimRequest{Queue: "q", Worker: "w", Nonce: "1", Max: 1, Lease: time.Minute})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "replica")
	require.NoError(t, client.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
	assert.Len(t, claim(t, s, 10, time.Minute), 1)
	audited(t, s)
}

func TestAServerThatEvictsIsRefused(t *testing.T) {
	client := server(t, "--maxmemory-policy", "allkeys-lru")
	_, err := redisstore.New(ctx, client)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "noeviction")
}

func TestAServerWithoutAnAppendOnlyFileIsWarnedOf(t *testing.T) {
	client := server(t, "--appendonly", "no")
	var warned []string
	s, err := redisstore.New(ctx, client, redisstore.Warn(func(text string) { warned = append(warned, text) }))
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	require.Len(t, warned, 1)
	assert.Contains(t, warned[0], "appendonly yes")
}

// daemon starts a server on what is in dir, and returns what kills it.
func daemon(t *testing.T, dir string) (kill func()) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	require.NoError(t, err)
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(path, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	require.NoError(t, cmd.Start())
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	client := clientOf(socket)
	defer func() { _ = client.Close() }()
	require.Eventually(t, func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
			err = client.Ping(ctx).Err()
		}
		return err == nil
	}, patience, 10*time.Millisecond)
	return kill
}

// A task that was acknowledged is there after kill -9 of a server with appendfsync always.
func TestAServerThatIsKilledAndStartedAgain(t *testing.T) {
	dir := t.TempDir()
	kill := daemon(t, dir)
	client := clientOf(filepath.Join(dir, "s"))
	t.Cleanup(func() { _ = client.Close() })
	s := open(t, client)
	for i := range 20 {
		enqueue(t, s, task(fmt.Sprint(i)))
	}
	runs := claim(t, s, 5, time.Minute)
	settle(t, s, runs[0])
	kill()
	_, err := s.Enqueue(ctx, "q", []taskqueue.Task{task("lost")})
	require.Error(t, err)
	daemon(t, dir)
	settle(t, s, runs[0])
	settle(t, s, runs[1])
	extend(t, s, runs[2], "half")
	assert.Len(t, claim(t, s, 100, time.Minute), 15)
	st, err := s.Stats(ctx, "q")
	require.NoError(t, err)
	assert.EqualValues(t, 18, st.States[taskqueue.StateRunning])
	assert.EqualValues(t, 2, st.States[taskqueue.StateDone])
	audited(t, s)
}

// asynq 1144, 420: ids without their payloads, on which every worker fails.
func TestAsynq1144AnIDWithoutItsPayloadIsADeadLetter(t *testing.T) {
	client := server(t)
	s := open(t, client)
	enqueue(t, s, task("orphan"), task("z"))
	require.NoError(t, client.HDel(ctx, "tq:{q}:p", "orphan").Err())
	runs := claim(t, s, 10, time.Minute)
	require.Len(t, runs, 1)
	assert.Equal(t, "z", runs[0].ID)
	i, err := s.Get(ctx, "q", "orphan")
	require.NoError(t, err)
	assert.Equal(t, taskqueue.StateDead, i.State)
	assert.Contains(t, i.LastError, "lost")
	audited(t, s)
}

// bull 1893: every delayed job woke every worker.
func TestBull1893OnlyANewHeadWakesWorkers(t *testing.T) {
	client := server(t)
	s := open(t, client)
	sub := client.PSubscribe(ctx, "tq:*")
	defer func() { assert.NoError(t, sub.Close()) }()
	_, err := sub.Receive(ctx) // it is subscribed
	require.NoError(t, err)
	claim(t, s, 1, time.Minute) // somebody sleeps
	asleep(t, client)
	for i := range 50 {
		later := task(fmt.Sprint(i))
		later.Delay = time.Hour + time.Duration(i)*time.Second
		enqueue(t, s, later)
	}
	enqueue(t, s, task("now"))
	require.NoError(t, client.Publish(ctx, "tq:end", "").Err())
	n := 0
	for m := range sub.Channel() {
		if m.Channel == "tq:end" {
			break
		}
		n++
	}
	assert.Equal(t, 2, n, "one for the first, one for what is due now")
}

// asynq 389, rq 472: what took one job looked at all.
func TestAsynq389NoStepLooksAtEveryTask(t *testing.T) {
	client := server(t)
	s := open(t, client)
	for i := range 20 {
		enqueue(t, s, task(fmt.Sprint(i)))
	}
	require.NoError(t, client.ConfigResetStat(ctx).Err())
	for _, run := range claim(t, s, 20, time.Minute) {
		extend(t, s, run, "half")
		settle(t, s, run)
	}
	stats, err := client.Info(ctx, "commandstats").Result()
	require.NoError(t, err)
	for _, slow := range []string{"lrange", "lrem", "linsert", "smembers", "keys", "scan", "hkeys", "hvals", "sort", "zremrangebyrank"} {
		assert.NotContains(t, strings.ToLower(stats), "cmdstat_"+slow+":")
	}
}

// As TestAsynq1144AnIDWithoutItsPayloadIsADeadLetter, in the other states.
func TestAnIDWithoutItsPayloadIsADeadLetterInEveryState(t *testing.T) {
	client := server(t)
	s := open(t, client)
	enqueue(t, s, task("dead"), task("retrying"), task("running"))
	runs := claim(t, s, 3, time.Millisecond)
	require.Len(t, runs, 3)
	for i, kind := range []store.OutcomeKind{store.Buried, store.Failed} {
		_, err := s.Settle(ctx, "q", []store.Outcome{{Ref: store.Ref{ID: runs[i].ID, Token: runs[i].Token}, Kind: kind}})
		require.NoError(t, err)
	}
	held := task("ready")
	held.UniqueKey = "k"
	enqueue(t, s, held)
	for _, id := range []string{"dead", "retrying", "running", "ready"} {
		require.NoError(t, client.HDel(ctx, "tq:{q}:p", id).Err())
	}
	require.Eventually(t, func() bool { // until the lease has been reaped
		assert.Empty(t, claim(t, s, 10, time.Minute))
		_, err := s.Get(ctx, "q", "running")
		return err == nil
	}, patience, 5*time.Millisecond)
	for _, id := range []string{"retrying", "running", "ready"} {
		i, err := s.Get(ctx, "q", id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateDead, i.State, id)
		assert.Contains(t, i.LastError, "lost")
	}
	n, _, err := s.Purge(ctx, "q", taskqueue.StateDead, "")
	require.NoError(t, err)
	assert.Equal(t, 4, n)
	held.ID = "next"
	r, err := s.Enqueue(ctx, "q", []taskqueue.Task{held})
	require.NoError(t, err)
	assert.Equal(t, taskqueue.Added, r[0].Verdict, "the key of a lost task is free")
	audited(t, s)
}
