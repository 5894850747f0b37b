package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/sqlstore"
)

func TestBenchMeasuresAStoreAndLeavesNothingThere(t *testing.T) {
	store := newStore(t)
	status, out, errs := taskq(t, store, "bench", "-json", "-n", "300", "-late", "200ms")
	require.Zero(t, status, errs)
	assert.Contains(t, errs, "claim and settle", "progress")
	var r benchReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Len(t, r.Parts, 3)
	for i, n := range []int64{300, 300, 600} {
		assert.Equal(t, n, r.Parts[i].N, r.Parts[i].Name)
		assert.Positive(t, r.Parts[i].PerSecond)
	}
	require.NotNil(t, r.Late)
	assert.Equal(t, 10, r.Late.N)
	assert.GreaterOrEqual(t, r.Late.Earliest, 0.0, "it is the same clock")
	assert.LessOrEqual(t, r.Late.Median, r.Late.Latest)

	_, out, _ = taskq(t, store, "stats", "-json", benchQueue)
	var stats taskqueue.Stats
	require.NoError(t, json.Unmarshal([]byte(out), &stats), out)
	for state, n := range stats.States {
		assert.Zero(t, n, state)
	}
	_, out, errs = taskq(t, store, "show", "first")
	assert.Contains(t, out, "scheduled", "%s: other queues are not touched", errs)
	_, out, errs = taskq(t, store, "bench", "-n", "10", "-late", "0s")
	assert.Contains(t, out, "A SECOND", errs)
}

func TestBenchLeavesAQueueAloneThatIsInUse(t *testing.T) {
	status, _, errs := taskq(t, newStore(t), "bench", "-queue", "default")
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "queue default has tasks that are scheduled")
}

func TestBenchHasBounds(t *testing.T) {
	for _, args := range [][]string{{"-n", "0"}, {"-n", "1000001"}, {"-callers", "0"}, {"-payload", "-1"}, {"-limit", "0s"}} {
		status, _, errs := taskq(t, newStore(t), append([]string{"bench"}, args...)...)
		assert.Equal(t, 2, status, "%v: %s", args, errs)
	}
	store := newStore(t)
	status, out, errs := taskq(t, store, "bench", "-json", "-n", "1000000", "-limit", "100ms", "-late", "0s")
	require.Zero(t, status, errs)
	var r benchReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	assert.Less(t, r.Parts[0].N, int64(1000000), "it tells what is done when the time is over")
}

func TestBenchThatIsInterruptedLeavesNothingThere(t *testing.T) {
	path := strings.TrimPrefix(newStore(t), "sqlite:")
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "bench", "-n", "1000000", "-callers", "2")
	cmd.Env = append(os.Environ(), "TASKQ_TEST=1", "TASKQ_STORE=sqlite:"+path)
	progress, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = progress.Read(make([]byte, 1)) // it has begun
	require.NoError(t, err)
	other, err := sqlstore.OpenFile(t.Context(), path)
	require.NoError(t, err)
	q, err := taskqueue.New(other)
	require.NoError(t, err)
	q = q.In(benchQueue)
	require.Eventually(t, func() bool {
		stats, err := q.Stats(t.Context())
		return err == nil && stats.States[taskqueue.StateReady] > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, other.Close())
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	assert.Equal(t, 130, cmd.ProcessState.ExitCode())

	store, err := sqlstore.OpenFile(t.Context(), path)
	require.NoError(t, err)
	defer func() { assert.NoError(t, store.Close()) }()
	stats, err := store.Stats(t.Context(), benchQueue)
	require.NoError(t, err)
	for state, n := range stats.States {
		assert.Zero(t, n, state)
	}
	assert.Positive(t, stats.Counts[taskqueue.CountAdded])
}
