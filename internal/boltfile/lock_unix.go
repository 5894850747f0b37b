//go:build !windows && !plan9 && !solaris && !aix && !android && !js && !wasip1

package boltfile

import (
	"errors"
	"os"
	"syscall"
)

// Unlock gives the lock back, which also a mapping of the file into memory keeps.
func Unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// SyncFolder makes the name of a new file in a folder durable.
func SyncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
