package async

import (
	"runtime/debug"
)

// This file keeps users' panics and Goexits where they belong.

// trap makes a PanicError of a recovered value. A PanicError that passes
// through is not wrapped again.
func trap(t *task, value any) error {
	if p, ok := value.(*PanicError); ok && p.mark != nil {
		return p
	}
	return &PanicError{Value: value, Stack: debug.Stack(), Task: t.name(), mark: new(panicMark)}
}

// asPanic returns the PanicError that err is.
func asPanic(h how, err error) *PanicError {
	if h != panicked {
		return nil
	}
	return err.(*PanicError)
}

// guard calls f on a goroutine of its own and waits for it, so that neither a
// panic nor a Goexit of what users gave us takes the caller along. It is used
// for observers, discards and the like, not for handlers.
func guard(name string, f func()) error {
	done := make(chan error, 1)
	go func() {
		how := exited
		var err error
		defer func() {
			if how == exited {
				err = ErrGoexit
			}
			done <- err
		}()
		func() {
			defer func() {
				if how != returned {
					err = trap(&task{more: &more{taskOptions: taskOptions{name: name}}}, recover())
				}
			}()
			f()
			how = returned
		}()
		if how == exited {
			how = panicked
		}
	}()
	return <-done
}
