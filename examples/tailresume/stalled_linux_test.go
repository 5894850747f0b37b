package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The reader of our output is there, and does not read. The write that it keeps
// waiting cannot be cut short, and does not keep the program.
func TestReaderThatDoesNotRead(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	_, err = unix.FcntlInt(r.Fd(), unix.F_SETPIPE_SZ, 4096)
	require.NoError(t, err)
	p, dir := startEndless(t, func(cmd *exec.Cmd) { cmd.Stdout = w })
	require.NoError(t, w.Close())
	stuck := func(context.Context) (int, bool, error) { // all is in the log, and as much as can be in the pipe
		n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		return n, n > 0 && logged(t, dir) > 6_888_896, err
	}
	_, err = async.Poll(t.Context(), async.Every(5*time.Millisecond), stuck).Await(t.Context(), time.Minute)
	require.NoError(t, err)
	p.Signal(syscall.SIGINT)
	assert.Equal(t, 130, p.Wait())
	line := make([]byte, 6+20)
	n, err := r.Read(line)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(line[:n]), "\n")
	assertNothingLeft(t, groupOf(t, first), dir)
}

// logged returns the size of the log in a directory.
func logged(t *testing.T, dir string) (size int64) {
	logs, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, log := range logs {
		if info, err := os.Stat(log); err == nil {
			size += info.Size()
		}
	}
	return size
}
