//go:build unix

package workdir

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ambit-go/ambit/async"
)

// copyFiles copies the named files from one directory to another, some at a
// time. A file that is gone is left out, and so is what is neither a file, a
// directory nor a link. Nothing is read outside from or written outside to, whatever
// links there are.
func copyFiles(ctx context.Context, from, to string, names []string) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	// Directories first: those who copy files at once do not make them twice.
	for _, name := range names {
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
	}
	return async.ForEach(ctx, slices.Values(names), func(_ context.Context, name string) error {
		err := copyOne(source, root, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}, async.Limit(4), async.FailFast())
}

// copyWhole makes a directory of the named files, in place of one of that name: when all are there, until then in fresh.
func copyWhole(ctx context.Context, from, to, fresh string, names []string) error {
	if err := errors.Join(RemoveAll(fresh), os.MkdirAll(fresh, 0o755)); err != nil {
		return err
	}
	if err := copyFiles(ctx, from, fresh, names); err != nil {
		return errors.Join(err, RemoveAll(fresh))
	}
	if err := RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(fresh, to)
}

func copyOne(from, root *os.Root, name string) error {
	info, err := from.Lstat(name)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return root.MkdirAll(name, 0o755)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := from.Readlink(name)
		if err != nil {
			return err
		}
		_ = root.Remove(name)
		return root.Symlink(target, name)
	case info.Mode().IsRegular():
		return copyFile(from, root, name, info)
	}
	return nil
}

// copyFile copies a file with its time and permissions. The kernel does it, and
// shares the blocks where the file system can.
func copyFile(from, root *os.Root, name string, info fs.FileInfo) (err error) {
	src, err := from.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	_ = root.Remove(name) // a link there would be written through
	dst, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if e := dst.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = root.Chtimes(name, info.ModTime(), info.ModTime())
	}
	return err
}

// RemoveAll is os.RemoveAll, also of directories that may not be written to: a
// module cache is made of those.
func RemoveAll(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
