//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/examples/internal/clitest"
)

func TestASignalIsPassedOnAndBothEndsAreTold(t *testing.T) {
	t.Parallel()
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		script := "echo pid $$; trap 'echo cleaning up; exit 7' TERM" + forever
		p := clitest.Start(t, nil, "attach", "-c", script)
		p.WaitFor("ready")
		p.Signal(sig)
		assert.Equal(t, want, p.Wait())
		assert.Contains(t, p.Stdout(), "cleaning up\n")
		assert.Equal(t, "attach: stopped by signal: "+sig.String()+"; the script exited with status 7\n", p.Stderr())
		assert.Empty(t, clitest.InGroup(t, clitest.Number(t, p.Stdout(), "pid")), "left behind")
	}
}

func TestASignalEndsTheProgramWhateverTheDaemonDoes(t *testing.T) {
	t.Parallel()
	p := clitest.Start(t, nil, "attach", "-daemon", "no-stop", "-grace", "1s", "-request", "1s", "-c", "echo pid $$"+forever)
	p.WaitFor("ready")
	p.Signal(os.Interrupt)
	assert.Equal(t, 125, p.Wait())
	assert.Contains(t, p.Stderr(), "stopped by signal: interrupt; abandoned")
	assert.Empty(t, clitest.InGroup(t, clitest.Number(t, p.Stdout(), "pid")), "left behind")
}

// The input is a connection that is reset by its other end.
func TestAnInputThatIsResetEndsTheJob(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	theirs, err := l.Accept()
	require.NoError(t, err)
	stdin, err := theirs.(*net.TCPConn).File()
	require.NoError(t, err)

	script := "trap 'echo last words; exit 7' TERM; read -r line; echo got $line" + forever
	p := clitest.Start(t, func(cmd *exec.Cmd) { cmd.Stdin = stdin }, "attach", "-c", script)
	require.NoError(t, stdin.Close())
	require.NoError(t, theirs.Close())
	_, err = ours.Write([]byte("input\n"))
	require.NoError(t, err)
	p.WaitFor("got input")
	p.WaitFor("ready")
	require.NoError(t, ours.(*net.TCPConn).SetLinger(0))
	require.NoError(t, ours.Close())
	assert.Equal(t, 125, p.Wait())
	assert.Contains(t, p.Stdout(), "last words\n")
	assert.Contains(t, p.Stderr(), "the input broke: ")
	assert.Contains(t, p.Stderr(), "connection reset by peer; the script exited with status 7\n")
}

// A closed pipe must not end the program before the daemon has been told.
func TestAReaderThatGoesAwayStopsTheJob(t *testing.T) {
	cmd := exec.Command("bash", "-c", `attach -c 'trap "exit 7" TERM; echo ready; while echo y; do :; done' | head -n 1; exit "${PIPESTATUS[0]}"`)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	assert.Equal(t, "ready\n", string(out))
	assert.Equal(t, 141, cmd.ProcessState.ExitCode())
	assert.Contains(t, stderr.String(), "broken pipe; the script exited with status 7")
}

// The grace is longer than any test.
func TestASecondSignalEndsTheGrace(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	p := clitest.Start(t, func(cmd *exec.Cmd) { cmd.Env = append(os.Environ(), "TMPDIR="+tmp) },
		"attach", "-grace", "1h", "-c", "echo pid $$; trap 'echo I stay' TERM"+forever)
	p.WaitFor("ready")
	p.Signal(syscall.SIGINT)
	p.WaitFor("I stay")
	p.Signal(syscall.SIGINT)
	assert.Equal(t, 130, p.Wait())
	assert.Equal(t, "attach: stopped by signal: interrupt; the script exited with status 137\n", p.Stderr())
	assert.Empty(t, clitest.InGroup(t, clitest.Number(t, p.Stdout(), "pid")), "left behind")
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, left, "files that are left")
}
