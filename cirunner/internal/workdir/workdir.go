//go:build unix

// Package workdir keeps the files of a run in a directory of its own:
//
//	.cirunner/
//	    .gitignore       so that git and the next run overlook all this
//	    lock             held for an instant, by who begins a run
//	    resources/       a file for each resource_group, locked by the job that has it
//	    7/               a run
//	        lock         held while the run lasts; gone when it has ended
//	        groups       the process groups it has started
//	        engine       the client of its containers and where that finds the engine, an argument or a variable a line
//	        source/      the project as it was when the run began
//	        jobs/        a copy of that for each job under way
//	        scripts/     what its shells are given
//	        artifacts/   what jobs have left for later ones
//	        logs/        what they have said
//
// A run that was killed, or could not remove its containers, leaves its lock file behind,
// unlocked: that is how the next one knows. workdir.go is the run, stale.go what others have left,
// groups.go the processes, snapshot.go and copy.go the copies, artifacts.go the
// artifacts.
package workdir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/ambit-go/ambit/async"
)

// Name is the name of the directory, in that of the project.
const Name = ".cirunner"

// A Run is the directory of a run that lasts.
type Run struct {
	Dir     string // absolute, without links
	ID      int    // 1 for the first
	Project string // absolute
	lock    *os.File
	modules []Module // set by SnapshotModules

	graveyard
}

// Open makes the directory of a run of the project, and returns what earlier
// runs have left there.
func Open(project string) (*Run, []Stale, error) {
	project, err := filepath.Abs(project)
	if err != nil {
		return nil, nil, err
	}
	base := filepath.Join(project, Name)
	if err := os.Mkdir(base, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, err
	}
	// The system tells where a process works without the links that lead there.
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(filepath.Join(base, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return nil, nil, err
	}
	door, err := lock(filepath.Join(base, "lock"), syscall.LOCK_EX)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = unlock(door) }()
	// Behind the door nobody else makes a run or looks for stale ones: a lock
	// file that is not locked has no owner, not one that is about to lock it.
	ids, err := runs(base)
	if err != nil {
		return nil, nil, err
	}
	stale := lookForStale(base, ids)
	id := 1
	for _, other := range ids {
		id = max(id, other+1)
	}
	r := &Run{Dir: filepath.Join(base, strconv.Itoa(id)), ID: id, Project: project}
	return r, stale, r.make()
}

// make makes the directory. One that cannot be made whole goes: the next run would take it for that of a runner that was killed.
func (r *Run) make() error {
	if err := os.Mkdir(r.Dir, 0o755); err != nil {
		return err
	}
	if err := r.fill(); err != nil {
		return errors.Join(err, RemoveAll(r.Dir))
	}
	return nil
}

// fill makes what is in the directory, and takes the lock.
func (r *Run) fill() (err error) {
	for _, dir := range []string{"logs", "jobs", "artifacts"} {
		if err := os.Mkdir(filepath.Join(r.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	// Files of variables are there, which every user of a container reads, and nobody else does.
	if err := os.Mkdir(r.Path("scripts"), 0o700); err != nil {
		return err
	}
	r.lock, err = lock(filepath.Join(r.Dir, "lock"), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.lock, "%d\n", os.Getpid())
	return err
}

// Path returns the path of something in the directory.
func (r *Run) Path(elem ...string) string {
	return filepath.Join(append([]string{r.Dir}, elem...)...)
}

// Close ends the run: its copies go, logs and artifacts stay.
func (r *Run) Close(keep bool) error {
	var errs []error
	if !keep {
		errs = append(errs, RemoveAll(r.Path("source")), RemoveAll(r.Path("jobs")), RemoveAll(r.Path("scripts")), RemoveAll(r.Path("modules")), os.Remove(r.Path("groups")), os.Remove(r.Path("engine")))
	}
	errs = append(errs, os.Remove(r.Path("lock")), unlock(r.lock))
	for i, err := range errs {
		if errors.Is(err, fs.ErrNotExist) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// Prune removes what ended runs have left, but for the newest keep of them, and for this one: others may have begun and
// ended since.
func (r *Run) Prune(ctx context.Context, keep int) error {
	base := filepath.Dir(r.Dir)
	door, err := lock(filepath.Join(base, "lock"), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer func() { _ = unlock(door) }()
	ids, err := runs(base)
	if err != nil {
		return err
	}
	var ended []int
	for _, id := range ids {
		if _, err := os.Lstat(filepath.Join(base, strconv.Itoa(id), "lock")); errors.Is(err, fs.ErrNotExist) {
			ended = append(ended, id)
		}
	}
	old := slices.DeleteFunc(ended[:max(len(ended)-keep, 0)], func(id int) bool { return id == r.ID })
	return async.ForEach(ctx, slices.Values(old), func(_ context.Context, id int) error { return RemoveAll(filepath.Join(base, strconv.Itoa(id))) }, async.Limit(2))
}

// lock opens and locks a file. The lock is gone with unlock, or when the process has
// ended in whatever way.
func lock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// unlock gives a lock back and closes the file. To close it is not enough: a process that this one is just starting has
// all open files until it has become its program, and with the file the lock.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// A held is a lock that is given back when it is closed.
type held struct{ file *os.File }

// Close gives the lock back.
func (h held) Close() error { return unlock(h.file) }

// TryResource locks something that runs of the project share, by its name. It returns nil
// if another run has it. The lock is gone when the Closer is closed, or with the process.
func (r *Run) TryResource(name string) (io.Closer, error) {
	dir := filepath.Join(filepath.Dir(r.Dir), "resources")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return tryLock(filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:32]))
}

// tryLock locks a file until the Closer is closed. It returns nil if somebody else has it.
func tryLock(path string) (io.Closer, error) {
	file, err := lock(path, syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return held{file}, nil
}

// runs returns the numbers of all runs, ascending.
func runs(base string) ([]int, error) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil && id > 0 && e.IsDir() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids) // by number, not by name
	return ids, nil
}
