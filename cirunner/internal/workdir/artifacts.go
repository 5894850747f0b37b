//go:build unix

package workdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Collect keeps the artifacts of a job: the files and directories that match a
// pattern, without those that match one of exclude. It returns how many files it
// has kept, and the patterns that match nothing. Where not all can be kept none is.
func (r *Run) Collect(ctx context.Context, job string, patterns, exclude []string) (files int, missing []string, err error) {
	from, to := r.JobDir(job), r.Path("artifacts", job)
	for i, p := range exclude {
		exclude[i] = relative(from, p)
	}
	var names []string
	for _, pattern := range patterns {
		found, err := match(from, pattern)
		if err != nil {
			return 0, nil, err
		}
		if len(found) == 0 {
			missing = append(missing, pattern)
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	names = slices.DeleteFunc(names, func(name string) bool { return excluded(name, exclude) })
	if err := RemoveAll(to); err != nil { // of an earlier attempt
		return 0, missing, err
	}
	if len(names) == 0 {
		return 0, missing, nil
	}
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(from, name)); err == nil && isCopied(info.Mode()) {
			files++
		}
	}
	return files, missing, copyWhole(ctx, from, to, to+".new", names)
}

// Restore puts the artifacts of one job into the work directory of another, and
// returns how many files that are.
func (r *Run) Restore(ctx context.Context, from, into string) (files int, err error) {
	dir := r.Path("artifacts", from)
	if _, err := os.Stat(dir); err != nil {
		return 0, nil // it has left none
	}
	names, err := listFiles(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			files++
		}
	}
	return files, copyFiles(ctx, dir, r.JobDir(into), names)
}

// Artifact returns a file that a job has left among its artifacts, if it has at most a number of bytes.
func (r *Run) Artifact(job, name string, limit int64) ([]byte, error) {
	dir := r.Path("artifacts", job)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.New("the job has left no artifacts")
	}
	defer func() { _ = root.Close() }()
	name = relative(dir, name)
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return nil, errors.New("there is no such file among them")
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no file")
	case info.Size() > limit:
		return nil, fmt.Errorf("it has more than %d bytes", limit)
	}
	return root.ReadFile(name)
}

// Read calls f with each file in the directory of a job that a pattern matches, and returns
// the patterns that match none.
func (r *Run) Read(job string, patterns []string, f func(name string, file *os.File)) (missing []string, err error) {
	dir := r.JobDir(job)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	for _, pattern := range patterns {
		names, err := match(dir, pattern)
		if err != nil {
			return missing, err
		}
		read := 0
		for _, name := range names {
			if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
				continue
			}
			file, err := root.Open(name)
			if err != nil {
				return missing, err
			}
			f(name, file)
			_ = file.Close()
			read++
		}
		if read == 0 {
			missing = append(missing, pattern)
		}
	}
	return missing, nil
}

// relative returns a pattern without the directory that it may begin with:
// $CI_PROJECT_DIR/out is out, and $CI_PROJECT_DIR is a dot.
func relative(dir, pattern string) string {
	clean := path.Clean(strings.TrimPrefix(filepath.ToSlash(pattern), "./"))
	if clean == filepath.ToSlash(dir) {
		return "."
	}
	return strings.TrimPrefix(clean, filepath.ToSlash(dir)+"/")
}

// match returns what a pattern matches in dir; of a directory, everything in it.
// A text that is no pattern, or one of files elsewhere, matches nothing.
func match(dir, pattern string) ([]string, error) {
	clean := relative(dir, pattern)
	if !fs.ValidPath(clean) || !doublestar.ValidatePattern(clean) {
		return nil, nil
	}
	// A root does not see what is behind a link that leads out of it.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	found, err := doublestar.Glob(root.FS(), clean, doublestar.WithNoFollow())
	if err != nil {
		return nil, err
	}
	if _, err := root.Lstat(clean); err == nil && len(found) == 0 {
		found = []string{clean} // a link that leads nowhere, or out
	}
	var names []string
	for _, name := range found {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || !info.IsDir() {
			names = append(names, name)
			continue
		}
		inside, err := listFiles(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		for _, in := range inside {
			names = append(names, filepath.Join(name, in))
		}
	}
	return names, nil
}

// isCopied reports whether it is a file or a link, and no directory, pipe or device.
func isCopied(mode fs.FileMode) bool { return mode.IsRegular() || mode&fs.ModeSymlink != 0 }

func excluded(name string, patterns []string) bool {
	for _, p := range patterns {
		if ok, _ := doublestar.Match(p, filepath.ToSlash(name)); ok {
			return true
		}
	}
	return false
}
