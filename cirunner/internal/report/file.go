package report

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// write makes a file of what fill writes: completely or not at all, whoever reads it
// meanwhile. A pipe or a device is written to, and a link is followed.
func write(path string, fill func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // it must not be replaced by a file
		if err != nil {
			return err
		}
		return errors.Join(buffered(f, fill), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(buffered(f, fill), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func buffered(f *os.File, fill func(io.Writer) error) error {
	b := bufio.NewWriter(f)
	if err := fill(b); err != nil {
		return err
	}
	return b.Flush()
}
