//go:build unix

package workdir

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A Group is a process group.
type Group struct {
	ID  int
	Job string
}

// Record writes down that a process group was started for a job.
func (r *Run) Record(group int, job string) error {
	f, err := os.OpenFile(r.Path("groups"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %s\n", group, strconv.Quote(job)) // one write: lines of several jobs do not mix
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// Survivors returns the groups of the run that have processes.
func (r *Run) Survivors() []Group { return survivors(r.Dir) }

// survivors returns the groups that have a process of a run: those that it has written
// down, and those that its processes have made since. Where there is no /proc it finds
// nothing.
func survivors(dir string) []Group {
	recorded := readGroups(filepath.Join(dir, "groups"))
	var alive []Group
	for _, pid := range carriers(jobToken(dir, "")) {
		group, err := syscall.Getpgid(pid)
		if err != nil || slices.ContainsFunc(alive, func(g Group) bool { return g.ID == group }) {
			continue
		}
		job, known := recorded[group]
		if !known {
			job = "a job" // the process has left the group that was written down
		}
		alive = append(alive, Group{group, job})
	}
	return alive
}

func readGroups(path string) map[int]string {
	groups := map[int]string{}
	data, _ := os.ReadFile(path)
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		id, job, _ := strings.Cut(lines.Text(), " ")
		// The last line may have been cut short by the end of the runner.
		group, err := strconv.Atoi(id)
		name, err2 := strconv.Unquote(job)
		if err == nil && err2 == nil && group > 1 {
			groups[group] = name
		}
	}
	return groups
}

// Kill ends the processes of a stale run, after another look at whose they are.
func (s *Stale) Kill() { killCarriers(jobToken(s.Dir, "")) }
