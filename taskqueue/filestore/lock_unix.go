//go:build !windows && !plan9 && !solaris && !aix && !android && !js && !wasip1

package filestore

import (
	"errors"
	"os"
	"syscall"
)

// unlock gives the lock back, which also a mapping of the file into memory keeps.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// syncFolder makes the name of a new file in a folder durable.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
