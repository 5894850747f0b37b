// Package clitest helps to test programs as their users run them: as processes, with signals and an exit status.
//
//	func TestMain(m *testing.M) {
//		testscript.Main(clitest.LeakChecked(m), map[string]func(){"runstep": main})
//	}
//
//	func TestASecondSignalEndsTheGrace(t *testing.T) {
//		p := clitest.Start(t, nil, "runstep", "-grace", "1m", "--", "bash", "-c", "trap '' TERM; echo ready; sleep 600")
//		p.WaitFor("ready")
//		p.Signal(os.Interrupt)
//		p.WaitForStderr("SIGTERM")
//		p.Signal(os.Interrupt)
//		assert.Equal(t, 137, p.Wait())
//	}
//
// The program is the test binary itself, under another name: package testscript, of github.com/rogpeppe/go-internal,
// puts it into PATH, and runs scripts besides; [Commands] and [Setup] are for those. No test of a program waits
// by the clock: [Process.WaitFor], [Process.WaitForStderr] and [Eventually] wait for what the program does.
// [InGroup], [Children] and [Alive], which only Unix has, say what is left of it.
package clitest

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a program may run. It is a guard against tests that hang,
// nothing to wait for: what is still there then is broken.
const patience = 2 * time.Minute

// sigabrt is SIGABRT, for which package syscall has no name on js/wasm.
const sigabrt = syscall.Signal(6)

// A Process is a program that runs. When the test ends, it is killed if it still
// runs.
type Process struct {
	t      testing.TB
	cmd    *exec.Cmd
	out    io.Closer
	errs   io.Closer
	lines  *bufio.Reader
	stdout bytes.Buffer // what WaitFor and Wait have read
	stderr transcript
	waited bool
}

// Start starts a program, which is killed at the end of the test if it still runs.
//
//	p := clitest.Start(t, nil, "runstep", "-grace", "1m", "--", "make", "test")
//
// # Details
//
// change, which may be nil, is called with the command before the start: to set its directory or environment.
//
// A program that still runs after two minutes is aborted, and its output closed,
// so a test fails that would have waited for ever; the stacks of the program's
// goroutines are in its standard error then.
func Start(t testing.TB, change func(*exec.Cmd), name string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: exec.Command(name, args...)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := p.cmd.StderrPipe()
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
	p.out, p.errs = out, errs
	p.stderr.follow(errs)
	guard := time.AfterFunc(patience, p.abort)
	t.Cleanup(func() {
		guard.Stop()
		if !p.waited {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait() // and closes the pipes
			<-p.stderr.ended
		}
	})
	return p
}

// abort ends a program that hangs, and, if a child of it has kept them, the
// pipes that it has written to.
func (p *Process) abort() {
	_ = p.cmd.Process.Signal(sigabrt)
	select {
	case <-p.stderr.ended:
	case <-time.After(10 * time.Second):
	}
	_ = p.out.Close()
	_ = p.errs.Close()
}

// WaitFor reads stdout up to a line that contains text, and returns that line; it fails the test if the output
// ends before.
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

// WaitForStderr waits until the process has written text to its standard error.
// It fails the test if that output ends before. It does not read stdout, so the
// process must not have more to print there than a pipe holds.
func (p *Process) WaitForStderr(text string) {
	p.t.Helper()
	for {
		changed := p.stderr.next()
		if strings.Contains(p.stderr.String(), text) {
			return
		}
		if changed == nil {
			p.t.Fatalf("stderr ended before %q was written; stdout:\n%s\nstderr:\n%s", text, p.stdout.String(), p.stderr.String())
		}
		<-changed
	}
}

// Signal sends a signal to the process.
func (p *Process) Signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// Signals runs a test with each signal that asks a program to stop, and the exit status which that makes.
//
//	clitest.Signals(t, func(t *testing.T, sig syscall.Signal, status int) { stopBy(t, sig, status) })
func Signals(t *testing.T, test func(t *testing.T, sig syscall.Signal, status int)) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no signals there")
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) { test(t, sig, 128+int(sig)) })
	}
}

// Pid returns the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Wait waits for the end of the process and returns its exit status, or 128 and
// the number of the signal that has ended it. It reads the output to its end, so
// it waits for children of the process that have kept that, too.
func (p *Process) Wait() int {
	p.t.Helper()
	_, _ = io.Copy(io.Discard, p.lines)
	<-p.stderr.ended
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

// A transcript is what has come out of a pipe so far. Tests read it while it
// grows.
type transcript struct {
	ended chan struct{} // closed when the pipe has ended

	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{} // closed at the next write, or the end; then replaced
}

// follow begins to copy what comes out of r, until that ends.
func (s *transcript) follow(r io.Reader) {
	s.ended, s.changed = make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = io.Copy(s, r)
		close(s.ended)
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.changed)
		s.changed = nil
	}()
}

func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.b.Write(p)
}

// next returns a channel that is closed when there is more than now, or nil if
// there will not be.
func (s *transcript) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
