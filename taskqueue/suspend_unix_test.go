//go:build unix

package taskqueue_test

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAfterASuspendTheHandlerLearnsItFirst(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), asSuspended+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Equal(t, "runs", lines.Text())
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(1500 * time.Millisecond) // no event says that a lease of a stopped process is over
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.True(t, lines.Scan())
	assert.Equal(t, "lost: true", lines.Text())
	require.NoError(t, cmd.Wait())
}
