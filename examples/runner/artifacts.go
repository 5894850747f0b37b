//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// artifacts returns the directory of the artifacts of a job.
func (r *runner) artifacts(job string) string { return filepath.Join(r.out, "artifacts", job) }

// keep copies the artifacts of a job out of its work directory, where later jobs find them. A pattern without a file is
// a failure of the job: later ones would miss it.
func (r *runner) keep(j *job, work string) error {
	dir := r.artifacts(j.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, pattern := range j.artifacts {
		files, err := filepath.Glob(filepath.Join(work, pattern))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("artifacts: no file matches %s", pattern)
		}
		for _, file := range files {
			name, err := filepath.Rel(work, file)
			if err != nil {
				return err
			}
			if err := copyFile(file, filepath.Join(dir, name)); err != nil {
				return fmt.Errorf("artifacts: %w", err)
			}
		}
	}
	return nil
}

// fetch copies the artifacts of a job into the work directory of one that needs it. A file that is
// there from a job before is replaced.
func (r *runner) fetch(job, work string) error {
	dir := r.artifacts(job)
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return copyFile(path, filepath.Join(work, name))
	})
}

// copyFile copies a file with its mode, in the place of one that is there. One that cannot be written to its end is an error.
func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode())
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
