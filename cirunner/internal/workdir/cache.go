//go:build unix

package workdir

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Store is a directory in which caches are kept, by key, from run to run, with .locks and .new, which no key may be. Runs
// may share it: whoever takes or keeps a cache of a key waits for
// the others, until its context is done.
type Store struct {
	Dir   string
	Waits func(key string) // is told of each wait for others; may be nil
}

// Take copies the cache of a key, which there must be, into the work directory of
// a job.
func (s Store) Take(ctx context.Context, r *Run, key, job string) error {
	return s.locked(ctx, key, func(dir string) error {
		names, err := listFiles(dir)
		if err != nil {
			return err
		}
		return copyFiles(ctx, dir, r.JobDir(job), names)
	})
}

// Has reports whether there is a cache of a key.
func (s Store) Has(key string) bool {
	info, err := os.Stat(filepath.Join(s.Dir, key))
	return err == nil && info.IsDir()
}

// Keep makes the cache of a key of what the patterns match in the work directory
// of a job, and returns how many files that are. A cache that is made only in part
// does not take the place of the one before. Where nothing matches, that stays.
func (s Store) Keep(ctx context.Context, r *Run, key, job string, patterns []string) (files int, err error) {
	from := r.JobDir(job)
	var names []string
	for _, p := range patterns {
		found, err := match(from, p)
		if err != nil {
			return 0, err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return 0, nil
	}
	return len(names), s.locked(ctx, key, func(dir string) error { return copyWhole(ctx, from, dir, filepath.Join(s.Dir, ".new", key), names) })
}

// locked calls f with the directory of a key, which nobody else uses meanwhile. It waits for others until ctx is done.
func (s Store) locked(ctx context.Context, key string, f func(dir string) error) error {
	locks := filepath.Join(s.Dir, ".locks")
	if err := os.MkdirAll(locks, 0o755); err != nil {
		return err
	}
	waits := false
	door, err := async.Poll(ctx, async.Backoff(10*time.Millisecond, 500*time.Millisecond), func(context.Context) (io.Closer, bool, error) {
		door, err := tryLock(filepath.Join(locks, key))
		if door == nil && err == nil && !waits && s.Waits != nil {
			waits = true
			s.Waits(key)
		}
		return door, door != nil, err
	}).Wait(context.WithoutCancel(ctx)) // it ends with ctx, and a lock that it has got is not lost
	if err != nil {
		return err
	}
	defer func() { _ = door.Close() }()
	return f(filepath.Join(s.Dir, key))
}
