package clitest

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a program may run. It is a guard against tests that hang,
// nothing to wait for: what is still there then is broken.
const patience = 2 * time.Minute

// A Process is a program that runs. When the test ends, it is killed if it still
// runs.
type Process struct {
	t      testing.TB
	cmd    *exec.Cmd
	out    io.Closer
	lines  *bufio.Reader
	stdout bytes.Buffer // what WaitFor and Wait have read
	stderr lockedBuffer
	waited bool
}

// Start starts a program. change, which may be nil, is called with the command
// before that: to set its directory or environment.
//
// A program that still runs after two minutes is aborted, and its output closed,
// so a test fails that would have waited for ever; the stacks of the program's
// goroutines are in its standard error then.
func Start(t testing.TB, change func(*exec.Cmd), name string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: exec.Command(name, args...)}
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = 10 * time.Second // for a child of its own that keeps stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewReader(io.TeeReader(out, &p.stdout))
	if change != nil {
		change(p.cmd)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.out = out
	guard := time.AfterFunc(patience, p.abort)
	t.Cleanup(func() {
		guard.Stop()
		if !p.waited {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

// abort ends a program that hangs, and whoever reads its output.
func (p *Process) abort() {
	_ = p.cmd.Process.Signal(syscall.SIGABRT)
	_ = p.out.Close()
}

// WaitFor reads stdout up to a line that contains text, and returns that line.
// It fails the test if the output ends before.
func (p *Process) WaitFor(text string) string {
	p.t.Helper()
	for {
		line, err := p.lines.ReadString('\n')
		if strings.Contains(line, text) {
			return strings.TrimSuffix(line, "\n")
		}
		if err != nil {
			p.t.Fatalf("%v before %q was printed; stdout:\n%s\nstderr:\n%s", err, text, p.stdout.String(), p.stderr.String())
		}
	}
}

// Signal sends a signal to the process.
func (p *Process) Signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// Pid returns the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Wait waits for the end of the process and returns its exit status, or 128 and
// the number of the signal that has ended it.
func (p *Process) Wait() int {
	p.t.Helper()
	_, _ = io.Copy(io.Discard, p.lines)
	_ = p.cmd.Wait()
	p.waited = true
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Stdout returns what has been read of the standard output: all of it after
// Wait.
func (p *Process) Stdout() string { return p.stdout.String() }

// Stderr returns what the process has written to its standard error so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// A lockedBuffer is written by the pump of a command and read by a test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
