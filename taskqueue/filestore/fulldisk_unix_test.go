//go:build unix

package filestore_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/filestore"
)

// alone runs the test in a process of its own, whose files alone are limited, and
// reports whether this is that process.
func alone(t *testing.T) bool {
	const env = "FILESTORE_TEST_ALONE"
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
	path := filepath.Join(t.TempDir(), "tasks")
	s, err := filestore.Open(path)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	other, err := filestore.Open(path) // through the socket
	require.NoError(t, err)
	defer func() { assert.NoError(t, other.Close()) }()
	add := func(st taskqueue.Store, i int) error {
		task := taskqueue.Task{ID: fmt.Sprint(i), Type: "t", Payload: make([]byte, 20_000), MaxFailures: 1, MaxCrashes: 1}
		_, err := st.Enqueue(t.Context(), "q", []taskqueue.NewTask{{Task: task}})
		return err
	}
	undo := limit(t, 1<<20)
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = add([]taskqueue.Store{s, other}[n%2], n)
	}
	n-- // the last was not acknowledged
	require.Error(t, err)
	assert.Contains(t, err.Error(), "could not be written")
	assert.Contains(t, err.Error(), "too large", "the reason")
	undo()
	for _, st := range []taskqueue.Store{s, other} {
		require.Eventually(t, func() bool { return add(st, n) == nil }, 20*time.Second, 5*time.Millisecond)
		for i := range n + 1 {
			_, err := st.Get(t.Context(), "q", fmt.Sprint(i))
			require.NoError(t, err)
		}
		faults, err := st.(taskqueue.Auditor).Audit(t.Context(), "q")
		require.NoError(t, err)
		assert.Empty(t, faults)
	}
}

// A file that was begun on a full disk is begun anew.
func TestAFullDiskAtTheFirstOpen(t *testing.T) {
	if !alone(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "tasks")
	undo := limit(t, 5000)
	_, err := filestore.Open(path)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "the disk is full")
	undo()
	s, err := filestore.Open(path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
