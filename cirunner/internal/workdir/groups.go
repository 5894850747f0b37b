//go:build unix

package workdir

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// TokenVariable is in the environment of every process of a run; its value is
// the directory of the run. It proves that a process is one of them, whatever
// the number of its group was used for since.
const TokenVariable = "CIRUNNER_RUN"

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

// survivors returns the groups that a run has written down and that still have
// a process that carries its token. It looks into /proc, and finds nothing where
// there is none.
func survivors(dir string) []Group {
	recorded := readGroups(filepath.Join(dir, "groups"))
	if len(recorded) == 0 {
		return nil
	}
	var alive []Group
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		group, err := syscall.Getpgid(pid)
		job, ours := recorded[group]
		if err != nil || !ours || !hasToken(pid, dir) {
			continue
		}
		alive = append(alive, Group{group, job})
		delete(recorded, group)
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

// hasToken reports whether a process belongs to a run. A zombie has no
// environment, and needs nothing of us.
func hasToken(pid int, dir string) bool {
	environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	token := []byte(TokenVariable + "=" + dir)
	for _, e := range bytes.Split(environ, []byte{0}) {
		if bytes.Equal(e, token) {
			return true
		}
	}
	return false
}

// Kill ends the processes of a stale run, after another look at whose they are.
func (s *Stale) Kill() {
	for _, g := range survivors(s.Dir) {
		_ = syscall.Kill(-g.ID, syscall.SIGKILL)
	}
}
