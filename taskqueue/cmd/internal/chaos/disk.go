//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// diskSize is that of a small disk, in bytes.
const diskSize = 96 << 20

// A disk is a small file system of its own that can be filled.
type disk struct {
	dir string
	err error // why it is none; then dir is a folder
}

func newDisk(dir string) (*disk, error) {
	d := &disk{dir: dir}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	d.err = syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskSize))
	return d, nil
}

func (d *disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// fill takes all space that is left.
func (d *disk) fill() error {
	f, err := os.Create(d.ballast())
	if err != nil {
		return err
	}
	for n := int64(diskSize); n >= 4096 && err == nil; {
		i, _ := f.Stat()
		if e := syscall.Fallocate(int(f.Fd()), 0, i.Size(), n); errors.Is(e, syscall.ENOSPC) {
			n /= 2
		} else {
			err = e
		}
	}
	return errors.Join(err, f.Close())
}

func (d *disk) empty() error {
	err := os.Remove(d.ballast())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (d *disk) close() {
	if d.err == nil {
		_ = syscall.Unmount(d.dir, syscall.MNT_DETACH)
	}
}
