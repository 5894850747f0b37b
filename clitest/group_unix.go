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

// Alive returns the ids of the processes among those given that live.
//
//	assert.Empty(t, clitest.Alive(t, pid))
//
// # Details
//
// A process that is dead and waits for its parent does not live.
func Alive(t testing.TB, pids ...int) []int {
	t.Helper()
	var alive []int
	for _, p := range processes(t) {
		for _, pid := range pids {
			if p.pid == pid && p.lives {
				alive = append(alive, pid)
			}
		}
	}
	return alive
}

// InGroup returns the ids of the processes of a process group that live.
//
//	assert.Empty(t, clitest.InGroup(t, p.Pid()))
func InGroup(t testing.TB, group int) []int {
	t.Helper()
	var alive []int
	for _, p := range processes(t) {
		if p.group == group && p.lives {
			alive = append(alive, p.pid)
		}
	}
	return alive
}

// Children returns the ids of the processes that this one has started: those that live, and those that were not
// waited for.
//
//	assert.Empty(t, clitest.Children(t))
func Children(t testing.TB) []int {
	t.Helper()
	var all []int
	for _, p := range processes(t) {
		if p.parent == os.Getpid() {
			all = append(all, p.pid)
		}
	}
	return all
}

type process struct {
	pid, parent, group int
	lives              bool // it is not only waited for
}

// processes returns all processes: as /proc tells, or else ps.
func processes(t testing.TB) []process {
	t.Helper()
	var all []process
	add := func(pid, state, parent, group string) {
		id, e1 := strconv.Atoi(pid)
		p, e2 := strconv.Atoi(parent)
		g, e3 := strconv.Atoi(group)
		if e1 == nil && e2 == nil && e3 == nil {
			all = append(all, process{id, p, g, !strings.ContainsAny(state, "ZX")})
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
