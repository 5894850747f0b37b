//go:build unix

package boltkv_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/boltkv"
)

// alone runs the test in a process of its own, whose files alone are limited, and reports
// whether this is that process.
func alone(t *testing.T) bool {
	const env = "BOLTKV_TEST_ALONE"
	if os.Getenv(env) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), env+"="+t.Name())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// limit has no file of this process grow beyond n bytes, until the test ends or the
// returned function is called: so does a disk that is full.
func limit(t *testing.T, n uint64) (undo func()) {
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	signal.Ignore(syscall.SIGXFSZ)
	set := was
	set.Cur = n
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &set))
	undo = func() {
		_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was)
		signal.Reset(syscall.SIGXFSZ)
	}
	t.Cleanup(undo)
	return undo
}

// What was acknowledged is there when there is room again, and the store goes on.
func TestAFullDisk(t *testing.T) {
	if !alone(t) {
		return
	}
	path := newPath(t)
	s := openFile(t, path)
	queues := []*kvqueue.Queue{openQueue(t, s), openQueue(t, dial(t, path))}
	undo := limit(t, 1<<20)
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		_, err = queues[n%2].Enqueue(t.Context(), fmt.Appendf(make([]byte, 20_000), "%d", n))
	}
	n-- // the last was not added
	require.ErrorIs(t, err, kvqueue.ErrNoSpace)
	require.NotErrorIs(t, err, kvqueue.ErrUnknown)
	assert.Contains(t, err.Error(), "make room on the disk of "+path)
	undo()
	for i := range 2 {
		_, err = queues[i].Enqueue(t.Context(), []byte("there is room"))
		require.NoError(t, err)
	}
	require.Len(t, drain(t, queues[0]), n+2)
}

// A file that was begun on a full disk is begun anew.
func TestAFullDiskAtTheFirstOpen(t *testing.T) {
	if !alone(t) {
		return
	}
	path := newPath(t)
	undo := limit(t, 5000)
	_, err := boltkv.Open(path)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "the disk is full")
	undo()
	openFile(t, path)
}
