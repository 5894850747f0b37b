//go:build unix

package clitest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Alive returns the ids of the processes among those given that live. One that
// is dead and waits for its parent does not.
func Alive(t testing.TB, pids ...int) []int {
	t.Helper()
	var alive []int
	for _, p := range processes(t) {
		for _, pid := range pids {
			if p.pid == pid {
				alive = append(alive, pid)
			}
		}
	}
	return alive
}

// InGroup returns the ids of the processes of a process group that live.
func InGroup(t testing.TB, group int) []int {
	t.Helper()
	var alive []int
	for _, p := range processes(t) {
		if p.group == group {
			alive = append(alive, p.pid)
		}
	}
	return alive
}

type process struct{ pid, group int }

// processes returns all processes that live: as /proc tells, or else ps.
func processes(t testing.TB) []process {
	t.Helper()
	var all []process
	add := func(pid, group, state string) {
		p, bad := strconv.Atoi(pid)
		g, worse := strconv.Atoi(group)
		if bad == nil && worse == nil && !strings.ContainsAny(state, "ZX") {
			all = append(all, process{p, g})
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
		add(filepath.Base(filepath.Dir(path)), string(f[2]), string(f[0]))
	}
	if len(stats) > 0 {
		return all
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,pgid=,stat=").Output()
	if err != nil {
		t.Fatal(fmt.Errorf("cannot list processes: %w", err))
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 {
			add(f[0], f[1], f[2])
		}
	}
	return all
}
