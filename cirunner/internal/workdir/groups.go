//go:build unix

package workdir

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Group is a process group.
type Group struct {
	ID  int
	Job string
}

// A recordedGroup is what is written down of a group.
type recordedGroup struct {
	job   string
	birth string // of its leader; empty where that cannot be known
}

// lives reports whether the group has processes and is still the one that was written down. A number that is free
// may be that of another group: the leader must be the same process. Without its leader nobody knows.
func (g recordedGroup) lives(id int) bool {
	return g.birth != "" && birth(id) == g.birth && groupLives(id)
}

// Record writes down that a process group was started for a job.
func (r *Run) Record(group int, job string) error {
	f, err := os.OpenFile(r.Path("groups"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %s %s\n", group, cmp.Or(birth(group), "-"), strconv.Quote(job)) // one write: lines of several jobs do not mix
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// Survivors returns the groups of the run that have processes.
func (r *Run) Survivors() []Group { return survivors(r.Dir) }

// survivors returns the groups that have a process of a run: those that it has written
// down, whatever has become of the environment of their processes, and those that its processes have made since.
// Where there is no /proc it finds nothing.
func survivors(dir string) []Group {
	recorded := readGroups(filepath.Join(dir, "groups"))
	var alive []Group
	for _, pid := range carriers(jobToken(dir, "")) {
		group, err := syscall.Getpgid(pid)
		if err != nil || slices.ContainsFunc(alive, func(g Group) bool { return g.ID == group }) {
			continue
		}
		known, found := recorded[group]
		if !found {
			known.job = "a job" // the process has left the group that was written down
		}
		alive = append(alive, Group{group, known.job})
	}
	for id, g := range recorded {
		if g.lives(id) && !slices.ContainsFunc(alive, func(a Group) bool { return a.ID == id }) {
			alive = append(alive, Group{id, g.job})
		}
	}
	slices.SortFunc(alive, func(a, b Group) int { return cmp.Compare(a.ID, b.ID) })
	return alive
}

func readGroups(path string) map[int]recordedGroup {
	groups := map[int]recordedGroup{}
	data, _ := os.ReadFile(path)
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		id, rest, _ := strings.Cut(lines.Text(), " ")
		born, job, _ := strings.Cut(rest, " ")
		// The last line may have been cut short by the end of the runner.
		group, err := strconv.Atoi(id)
		name, err2 := strconv.Unquote(job)
		if err != nil || err2 != nil || group <= 1 {
			continue
		}
		if born == "-" {
			born = ""
		}
		groups[group] = recordedGroup{name, born} // the last one, where several have had the number
	}
	return groups
}

// Kill ends the processes of a stale run, after another look at whose they are.
func (s *Stale) Kill() {
	for id, g := range readGroups(filepath.Join(s.Dir, "groups")) {
		killGroup(id, g)
	}
	killCarriers(jobToken(s.Dir, ""))
	for end := time.Now().Add(ending); len(survivors(s.Dir)) > 0 && time.Now().Before(end); {
		time.Sleep(pause) // until the system has ended them
	}
}

// killGroup kills all of a group. Its leader is stopped before, by a handle where the system has those, so that it
// is there, and the number that of no other group, when that is killed.
func killGroup(id int, g recordedGroup) {
	leader, err := os.FindProcess(id)
	if err != nil {
		return
	}
	defer func() { _ = leader.Release() }()
	if g.lives(id) && leader.Signal(syscall.SIGSTOP) == nil {
		_ = syscall.Kill(-id, syscall.SIGKILL)
	}
}
