//go:build unix

package sqlstore

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// asCrowd is the path of the file that a process of the crowd works on, which this test binary
// is when it is set. Its number is behind a colon.
const asCrowd = "TASKQUEUE_SQLSTORE_CROWD"

func crowdRole() bool { return os.Getenv(asCrowd) != "" }

const crowdLease = time.Second

// crowdProcess enqueues, claims and settles until it is killed. It notes its knowledge in a
// file beside the store, to which each line is added by one write.
func crowdProcess() {
	path, name, _ := strings.Cut(os.Getenv(asCrowd), ":")
	log, err := os.OpenFile(path+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	s, err := OpenFile(context.Background(), path)
	if err != nil {
		panic(err)
	}
	life := rand.Uint64()
	for n := 0; ; n++ {
		id := fmt.Sprintf("%s-%x-%d", name, life, n)
		one := newTask(id)
		one.MaxCrashes, one.Retention = 200, time.Hour
		if n%3 == 0 {
			one.UniqueKey = id
		}
		if _, err := s.Enqueue(context.Background(), "q", []taskqueue.Task{one}); err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(log, "acknowledged %s\n", id)
		crowdRound(s, log, name, fmt.Sprintf("%x/%d", life, n))
	}
}

// crowdRound claims some tasks and runs them, as long as their leases last.
func crowdRound(s *Store, log *os.File, name, nonce string) {
	before := time.Now()
	got, err := s.Claim(context.Background(), store.ClaimRequest{Queue: "q", Worker: name, Nonce: nonce, Max: 3, Lease: crowdLease})
	if err != nil {
		panic(err)
	}
	deadline := before.Add(crowdLease - crowdLease/20)
	for _, run := range got.Tasks {
		if !time.Now().Before(deadline) {
			return
		}
		// A process that is stopped right here has not begun yet, by this note: the lease counts.
		_, _ = fmt.Fprintf(log, "begin %s %d %d %d\n", run.ID, run.Token, time.Now().UnixMicro(), deadline.UnixMicro())
		time.Sleep(time.Millisecond)
		if !time.Now().Before(deadline) {
			return
		}
		_, _ = fmt.Fprintf(log, "end %s %d %d\n", run.ID, run.Token, time.Now().UnixMicro())
		r, err := s.Settle(context.Background(), "q", []store.Outcome{{Ref: store.Ref{ID: run.ID, Token: run.Token}, Kind: store.Succeeded}})
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(log, "settled %s %d %d\n", run.ID, run.Token, r[0])
	}
}

// Processes that share a file are killed and stopped, and others begin. Nothing that was
// acknowledged is lost, no task runs twice at once under valid leases, and none becomes a dead
// letter. TASKQUEUE_CROWD is how long that goes on, with sixteen processes; else it is short.
func TestProcessesThatShareAFileAreKilledAndStopped(t *testing.T) {
	size, rounds, until := 4, 25, time.Time{}
	if d, err := time.ParseDuration(os.Getenv("TASKQUEUE_CROWD")); err == nil {
		size, rounds, until = 16, 1<<30, time.Now().Add(d)
	}
	path := filepath.Join(t.TempDir(), "tasks.db")
	all := make([]*exec.Cmd, size)
	errors := new(strings.Builder)
	begin := func(i int) {
		all[i] = exec.Command(os.Args[0])
		all[i].Env = append(os.Environ(), fmt.Sprintf("%s=%s:%d", asCrowd, path, i))
		all[i].Stderr = errors
		require.NoError(t, all[i].Start())
	}
	kill := func(i int) {
		require.NoError(t, all[i].Process.Kill())
		_ = all[i].Wait()
		status := all[i].ProcessState.Sys().(syscall.WaitStatus)
		require.Equal(t, syscall.SIGKILL, status.Signal(), errors.String())
	}
	for i := range all {
		begin(i)
	}
	for round := 0; round < rounds && (until.IsZero() || time.Now().Before(until)); round++ {
		i := rand.IntN(size)
		time.Sleep(time.Duration(20+rand.IntN(150)) * time.Millisecond)
		if round%2 == 0 {
			kill(i)
			begin(i)
			continue
		}
		require.NoError(t, all[i].Process.Signal(syscall.SIGSTOP))
		time.Sleep(time.Duration(10+rand.IntN(1500)) * time.Millisecond)
		require.NoError(t, all[i].Process.Signal(syscall.SIGCONT))
	}
	for i := range all {
		kill(i)
	}
	s, err := OpenFile(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	drain(t, s)
	checkCrowd(t, s, path+".log")
	sound(t, s)
}

// drain runs what is left.
func drain(t *testing.T, s *Store) {
	for {
		got := claimed(t, s, 1000)
		var all []store.Outcome
		for _, run := range got.Tasks {
			all = append(all, store.Outcome{Ref: store.Ref{ID: run.ID, Token: run.Token}, Kind: store.Succeeded})
		}
		_, err := s.Settle(t.Context(), "q", all)
		require.NoError(t, err)
		stats, err := s.Stats(t.Context(), "q")
		require.NoError(t, err)
		if stats.States[taskqueue.StateReady]+stats.States[taskqueue.StateRunning]+stats.States[taskqueue.StateRetrying] == 0 {
			assert.Zero(t, stats.States[taskqueue.StateDead], "dead letters that the tasks did not earn")
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A crowdRun is a run as its process has noted it.
type crowdRun struct {
	token, begin, end int64 // it has ended, or its lease has
}

func checkCrowd(t *testing.T, s *Store, log string) {
	f, err := os.Open(log)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	runs := map[string][]*crowdRun{}
	settled := map[string]int64{}
	acknowledged := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		what, rest, _ := strings.Cut(lines.Text(), " ")
		var id string
		var token, a, b int64
		_, _ = fmt.Sscan(rest, &id, &token, &a, &b)
		switch what {
		case "acknowledged":
			acknowledged++
			i, err := s.Get(t.Context(), "q", id)
			if assert.NoError(t, err, id) {
				assert.Equal(t, taskqueue.StateDone, i.State, id)
			}
		case "begin":
			runs[id] = append(runs[id], &crowdRun{token, a, b})
		case "end":
			for _, r := range runs[id] {
				if r.token == token {
					r.end = min(r.end, a)
				}
			}
		case "settled":
			if store.SettleResult(a) == store.Settled {
				assert.Zero(t, settled[id], "%s was settled twice", id)
				settled[id] = token
			}
		}
	}
	for id, of := range runs {
		for i, r := range of {
			for _, other := range of[:i] {
				assert.NotEqual(t, other.token, r.token, id)
				assert.False(t, r.begin < other.end && other.begin < r.end, "%s ran twice at once: %+v and %+v", id, *other, *r)
			}
		}
	}
	t.Logf("%d tasks acknowledged, %d with more than one run", acknowledged, moreThanOne(runs))
	assert.Positive(t, acknowledged)
}

func moreThanOne(runs map[string][]*crowdRun) (n int) {
	for _, of := range runs {
		if len(of) > 1 {
			n++
		}
	}
	return n
}
