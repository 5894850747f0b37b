//go:build unix

package workdir

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Stale is what a run has left that was killed, or that could not remove its containers.
type Stale struct {
	ID     int
	Dir    string
	PID    string   // of the runner that was killed, as it wrote it down
	Ended  bool     // the runner was not killed: it could not remove its containers
	Jobs   []string // that were under way
	Groups []Group  // that still run
}

// lookForStale returns the runs whose lock nobody holds.
func lookForStale(base string, ids []int) []Stale {
	var all []Stale
	for _, id := range ids {
		dir := filepath.Join(base, strconv.Itoa(id))
		path := filepath.Join(dir, "lock")
		pid, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended as it should
		}
		held, err := lock(path, syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil {
			continue // it lasts
		}
		s := Stale{ID: id, Dir: dir, PID: strings.TrimSpace(string(pid)), Groups: survivors(dir)}
		s.Ended = s.PID == ended
		if jobs, err := os.ReadDir(filepath.Join(dir, "jobs")); err == nil {
			for _, j := range jobs {
				s.Jobs = append(s.Jobs, j.Name())
			}
		}
		_ = unlock(held)
		all = append(all, s)
	}
	return all
}

// ended is in the lock file, instead of the number of a process, of a run that has ended and has left containers.
const ended = "ended"

// CloseUnswept ends a run whose containers could not be removed. Everything stays for the next run, which finds the
// containers by it.
func (r *Run) CloseUnswept() error {
	err := r.lock.Truncate(0)
	if err == nil {
		_, err = r.lock.WriteAt([]byte(ended+"\n"), 0)
	}
	return errors.Join(err, unlock(r.lock))
}

// RecordEngine writes down the client of the containers of the run.
func (r *Run) RecordEngine(client []string) error {
	return os.WriteFile(r.Path("engine"), []byte(strings.Join(client, "\n")), 0o644)
}

// Engine returns the client of the containers of the run; none if it had none.
func (s *Stale) Engine() []string {
	data, _ := os.ReadFile(filepath.Join(s.Dir, "engine"))
	return strings.FieldsFunc(string(data), func(c rune) bool { return c == '\n' })
}

// Clear removes the copies of a stale run; its logs and artifacts stay. As long
// as processes of it run nothing is removed, and the next run reports it again. Its containers
// must be removed before: by the record that Clear removes they are found.
func (s *Stale) Clear() error {
	if len(survivors(s.Dir)) > 0 {
		return nil
	}
	err := errors.Join(RemoveAll(filepath.Join(s.Dir, "source")), RemoveAll(filepath.Join(s.Dir, "jobs")), RemoveAll(filepath.Join(s.Dir, "scripts")), RemoveAll(filepath.Join(s.Dir, "modules")))
	if err == nil {
		_ = os.Remove(filepath.Join(s.Dir, "groups"))
		_ = os.Remove(filepath.Join(s.Dir, "engine"))
		err = os.Remove(filepath.Join(s.Dir, "lock"))
	}
	return err
}
