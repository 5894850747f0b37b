package workdir

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of what its descendants leave behind, where it would be that of process 1. A
// process that has made a session of its own and cleared its environment is known by that, see worksForJob.
func Adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// worksForJob reports whether a process is our child by adoption and works in the directory of a job, which is the
// token of that. A child of our own works there, too: as the leader of a group, which is gone when the job is over,
// or in our group. Being adopted is not enough: what the client of an engine leaves behind may serve containers
// that are not ours.
//
// When the runner is dead nobody knows whose child a process was. Then one counts that works in the directory of
// some job of the run, has no terminal and is in no container: a person who looks around there has a terminal.
func worksForJob(pid int, token string) bool {
	s, ok := readStat(pid)
	adopted := s.parent == os.Getpid() && s.group != syscall.Getpgrp()
	orphan := strings.HasSuffix(token, "/") && s.terminal == 0 && s.parent != os.Getpid() && sameSpace(pid)
	if !ok || !adopted && !orphan {
		return false
	}
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && strings.HasPrefix(strings.TrimSuffix(dir, " (deleted)")+"/", strings.TrimSuffix(token, "/")+"/")
}

// sameSpace reports whether a process is in no container that we are not in.
func sameSpace(pid int) bool {
	own, err := os.Readlink("/proc/self/ns/pid")
	other, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return err == nil && err2 == nil && own == other
}

// A stat is what /proc tells of a process.
type stat struct {
	state                   byte
	parent, group, terminal int
}

func readStat(pid int) (s stat, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, false
	}
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // the name in parentheses may hold anything
	if len(f) < 5 {
		return s, false
	}
	parent, e1 := strconv.Atoi(string(f[1]))
	group, e2 := strconv.Atoi(string(f[2]))
	terminal, e3 := strconv.Atoi(string(f[4]))
	return stat{f[0][0], parent, group, terminal}, e1 == nil && e2 == nil && e3 == nil
}

// longDead is how long a child must have been dead, and not waited for, to be nobody's: those that this process has
// started are waited for at once, and must not be taken away from who waits. They lead a group, or are in that of this
// process: another child was adopted, and nobody waits for it.
const longDead = 5 * time.Second

// A graveyard are the dead children that were seen, and when first.
type graveyard struct {
	mu   sync.Mutex
	seen map[int]time.Time
}

// bury waits for the dead that were adopted, so that they do not stay in the table of processes for as long as the run.
func (g *graveyard) bury(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	dead := map[int]time.Time{}
	for _, pid := range children() {
		s, ok := readStat(pid)
		if !ok || s.state != 'Z' {
			continue
		}
		started := s.group == pid || s.group == syscall.Getpgrp()
		first, known := g.seen[pid]
		switch {
		case started && !known:
			dead[pid] = now
		case started && now.Sub(first) < longDead:
			dead[pid] = first
		default:
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
	g.seen = dead
}

// children returns the children of this process.
func children() (pids []int) {
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok && s.parent == os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
