package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
	"syscall"
)

// A Panicked is what bbolt has panicked with.
type Panicked struct{ Value any }

// Error returns the text of the value.
func (e *Panicked) Error() string { return fmt.Sprint(e.Value) }

// Guard has a file that is damaged meanwhile be an error: bbolt panics when it finds
// something that cannot be, and a read of what is not there any more is a fault. What it
// returns is deferred; after a panic it sets err to a [*Panicked] and calls release.
func Guard(err *error, release func()) func() {
	old := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(old)
		if p := recover(); p != nil {
			*err = &Panicked{p}
			release()
		}
	}
}

// SyncFailed reports whether it was the disk that did not keep what the system had
// taken. A write that fails leaves the file as it was.
func SyncFailed(err error) bool {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Op == "sync"
	}
	var number syscall.Errno
	return errors.As(err, &number) || strings.HasPrefix(err.Error(), "file sync error")
}
