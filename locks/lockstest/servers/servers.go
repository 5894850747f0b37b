// Package servers starts real database servers for tests: on the loopback interface or
// a socket, with a free port and a temporary folder, and stops them by pid. Tests kill
// them, stop and resume them, and start them again on what they have stored.
package servers

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A Server is one server process, and what it takes to start it again.
type Server struct {
	// URL is how a program of this project opens a store on the server. It is the same
	// after a restart.
	URL string
	// Network and Address are where it listens, for a proxy before it.
	Network, Address string

	t       testing.TB
	command func() *exec.Cmd
	ready   func() error

	mu      sync.Mutex
	process *exec.Cmd
	output  bytes.Buffer // read when the process has ended
}

// start starts the server, and has the end of the test stop it.
func (s *Server) start() *Server {
	s.t.Helper()
	s.t.Cleanup(s.Kill)
	s.Start()
	return s
}

// Start starts the server if it does not run, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return
	}
	cmd := s.command()
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	s.process = cmd
	var err error
	for range 6000 { // a minute; servers on a busy machine are slow
		if err = s.ready(); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.end(os.Kill)
	s.t.Fatalf("%s does not answer: %v\n%s", cmd.Path, err, s.output.String())
}

// Pid returns the pid of the server, 0 if it does not run.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.Process.Pid
}

// Stop asks the server to end, and waits until it has.
func (s *Server) Stop() { s.stop(terminate) }

// Kill ends the server as a crash does, and waits until it is gone.
func (s *Server) Kill() { s.stop(os.Kill) }

func (s *Server) stop(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.end(sig)
	}
}

func (s *Server) end(sig os.Signal) {
	_ = s.process.Process.Signal(sig)
	_ = s.process.Process.Signal(resume) // one that is paused does not hear the first
	_ = s.process.Wait()
	s.process = nil
}

// Pause stops the server from running, as SIGSTOP does: it is silent, and its
// connections stay.
func (s *Server) Pause() { s.signal(pause) }

// Resume has a paused server go on.
func (s *Server) Resume() { s.signal(resume) }

func (s *Server) signal(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		_ = s.process.Process.Signal(sig)
	}
}

// Restart ends the server and starts it again on what it has stored.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.Start()
}

// program finds the program of a server. One that is not installed skips the test, or
// fails it where CI=true.
func program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, fmt.Sprintf("%s is not installed: tools/needs.sh installs it", names[0]))
	return ""
}

// Missing skips the test because of something that is not there, or fails it where
// CI=true.
func Missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// port returns a port of the loopback interface that is free for the moment.
func port(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
