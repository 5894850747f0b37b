//go:build unix

package service_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a program may run. It is a guard against tests that hang,
// nothing to wait for.
const patience = 2 * time.Minute

// A process is a program that runs. It is killed when the test ends.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Reader
	stdout strings.Builder // what was read
	stderr bytes.Buffer    // complete after wait
	guard  *time.Timer
	waited bool
}

// start starts one of the programs.
func start(t *testing.T, name string, env ...string) *process {
	t.Helper()
	return startOn(t, nil, name, env...)
}

// startOn is start with a standard error that the test reads itself, if it is not nil.
func startOn(t *testing.T, stderr *os.File, name string, env ...string) *process {
	t.Helper()
	require.Contains(t, programs, name)
	p := &process{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), append(env, programVariable+"="+name, "GORACE=atexit_sleep_ms=20")...)
	p.cmd.Stderr = &p.stderr
	if stderr != nil {
		p.cmd.Stderr = stderr
	}
	var err error
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewReader(io.TeeReader(out, &p.stdout))
	require.NoError(t, p.cmd.Start())
	p.guard = time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	t.Cleanup(func() {
		p.guard.Stop()
		if !p.waited {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

// waitFor reads the output up to a line that begins with text, and returns that.
func (p *process) waitFor(text string) string {
	p.t.Helper()
	for {
		line, err := p.lines.ReadString('\n')
		if strings.HasPrefix(line, text) {
			return strings.TrimSpace(line)
		}
		if err != nil {
			p.waited = true
			_ = p.cmd.Wait()
			p.t.Fatalf("%v before %q; stdout:\n%s\nstderr:\n%s", err, text, p.stdout.String(), p.stderr.String())
		}
	}
}

// tell writes a line to the input.
func (p *process) tell() {
	p.t.Helper()
	_, err := io.WriteString(p.stdin, "go\n")
	require.NoError(p.t, err)
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

// wait waits for the end and returns the exit status; that of a process that a
// signal has killed is -1.
func (p *process) wait() int {
	p.t.Helper()
	_, err := io.ReadAll(p.lines)
	require.NoError(p.t, err)
	p.waited = true
	_ = p.cmd.Wait()
	p.guard.Stop()
	return p.cmd.ProcessState.ExitCode()
}

// said returns what the program has written to its standard error, without its
// name.
func (p *process) said() string { return strings.TrimPrefix(p.stderr.String(), "service.test: ") }
