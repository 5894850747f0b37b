//go:build unix

package proc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A sign is an output that tells when a line "ready" has come.
type sign struct {
	ready chan struct{} // closed at "ready"

	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
}

func newSign() *sign { return &sign{ready: make(chan struct{})} }

func (s *sign) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if bytes.Contains(s.text.Bytes(), []byte("ready\n")) {
		s.once.Do(func() { close(s.ready) })
	}
	return len(p), nil
}

func (s *sign) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// number returns the number in the first line of output that is word and a
// number: the process id that a script has printed, say.
func number(t testing.TB, output, word string) int {
	t.Helper()
	for line := range strings.Lines(output) {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(rest))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %q with a number in %q", word, output)
	return 0
}

// eventually waits until holds returns true. What takes a minute hangs.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(hang); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("has not come: %s", what)
		}
	}
}

// A running process, as the system lists it.
type running struct {
	pid, parent, group int
	state              string
}

func (p running) dead() bool { return strings.ContainsAny(p.state, "ZX") }

// alive returns the ids of the processes among those given that live. One that
// is dead and waits for its parent does not.
func alive(t testing.TB, pids ...int) (left []int) {
	t.Helper()
	for _, p := range processes(t) {
		for _, pid := range pids {
			if p.pid == pid && !p.dead() {
				left = append(left, pid)
			}
		}
	}
	return left
}

// inGroup returns the ids of the processes of a process group that live.
func inGroup(t testing.TB, group int) (left []int) {
	t.Helper()
	for _, p := range processes(t) {
		if p.group == group && !p.dead() {
			left = append(left, p.pid)
		}
	}
	return left
}

// processes returns all processes: as /proc tells, or else ps.
func processes(t testing.TB) []running {
	t.Helper()
	var all []running
	add := func(pid, state, parent, group string) {
		id, e1 := strconv.Atoi(pid)
		p, e2 := strconv.Atoi(parent)
		g, e3 := strconv.Atoi(group)
		if e1 == nil && e2 == nil && e3 == nil {
			all = append(all, running{id, p, g, state})
		}
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name in parentheses may hold anything.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		add(filepath.Base(filepath.Dir(path)), string(f[0]), string(f[1]), string(f[2]))
	}
	if len(stats) > 0 {
		return all
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,stat=,ppid=,pgid=").Output()
	if err != nil {
		t.Fatal(fmt.Errorf("cannot list processes: %w", err))
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 4 {
			add(f[0], f[1], f[2], f[3])
		}
	}
	return all
}

// must is for programs of helpers.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
