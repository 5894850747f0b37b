package boltfile

import (
	"fmt"
	"runtime/debug"
)

// A Panicked is what bbolt has panicked with.
type Panicked struct{ Value any }

// Error returns the text of the value.
func (e *Panicked) Error() string { return fmt.Sprint(e.Value) }

// Guard has a file that is damaged meanwhile be an error: bbolt panics when it finds
// something that cannot be, and a read of what is not there any more is a fault. The function that
// it returns is deferred; after a panic it sets err to a [*Panicked] and calls release.
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
