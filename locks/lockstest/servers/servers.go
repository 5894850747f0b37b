// Package servers starts real database servers for tests: on the loopback interface or
// a socket, with a free port and a temporary folder, and stops them by pid. Tests kill
// them, stop and resume them, and start them again on what they have stored.
package servers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	// Dir has the data of a member of etcd.
	Dir string

	t       testing.TB
	command func() *exec.Cmd
	ready   func() error
	clock   string    // the file that FakeClock has its offset in
	quit    os.Signal // has it end in good order; nil: terminate

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
	cmd.WaitDelay = 10 * time.Second // for a child that has kept the output open
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	s.process = cmd
	s.await()
}

// await waits until the server answers. It is called with mu locked, or by who has the only handle.
func (s *Server) await() {
	s.t.Helper()
	var err error
	for range 6000 { // a minute; servers on a busy machine are slow
		if err = s.ready(); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	path := s.process.Path
	s.end(os.Kill)
	s.t.Fatalf("%s does not answer: %v\n%s", path, err, s.output.String())
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
func (s *Server) Stop() {
	if s.quit != nil {
		s.stop(s.quit)
		return
	}
	s.stop(terminate)
}

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
	if sig == os.Kill {
		_ = s.process.Process.Signal(pause) // so that it starts no other one
		s.each(os.Kill)
	} else {
		_ = s.process.Process.Signal(sig)
		s.each(resume) // one that is paused does not hear the first
	}
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
		s.each(sig)
	}
}

// each sends a signal to the server and to the processes that it has started, as
// PostgreSQL does for each connection.
func (s *Server) each(sig os.Signal) {
	if sig == pause {
		_ = s.process.Process.Signal(sig) // first, so that it starts no other one
	}
	of := children(s.process.Process.Pid) // while it is there to be their parent
	_ = s.process.Process.Signal(sig)
	for _, pid := range of {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Signal(sig)
		}
	}
}

// children returns the pids of the processes that a process has started, where there is
// a /proc to be read.
func children(parent int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent …, and the name may hold anything
		var state string
		var ppid int
		_, err = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &ppid)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && ppid == parent {
			pids = append(pids, pid)
		}
	}
	return pids
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
