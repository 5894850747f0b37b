package tree

import "github.com/ambit-go/ambit/async/internal/crash"

// This file keeps users' panics and Goexits where they belong.

// Trap makes an error of a recovered value. That of a panic which passes
// through is not wrapped again.
func Trap(t *Task, value any) error {
	if err, is := value.(error); is && Words.PanicIn(err) != nil {
		return err
	}
	return newPanic(t.Name(), value, crash.Stack()).AsError()
}

// Caught is deferred around a handler that has not returned if h does not say
// so: it recovers a panic, also one that was raised while Goexit ran. That
// nothing is recovered means Goexit, or, if the call comes back, a panic(nil) of
// old; see NilPanic. The stack is still there now, so err is set for that.
func Caught(t *Task, value any, h *ExitKind, err *error) {
	if *h == ByReturn {
		return
	}
	*err = Trap(t, value)
	if value != nil {
		*h = ByPanic
	}
}

// NilPanic is called after a handler's call has come back, which Goexit does
// not. So what caught took for a Goexit was a panic(nil), and err is its
// PanicError.
func NilPanic(h *ExitKind) {
	if *h == ByGoexit {
		*h = ByPanic
	}
}

// asPanic returns the panic that err stands for.
func asPanic(h ExitKind, err error) *Panic {
	if h != ByPanic {
		return nil
	}
	return Words.PanicIn(err)
}

// Guard calls f on a goroutine of its own and waits for it, so that neither a
// panic nor a Goexit of what users gave us takes the caller along. It is used
// for observers, discards and the like, not for handlers.
func Guard(name string, f func()) error {
	t := &Task{More: &More{TaskOptions: TaskOptions{Name: name}}}
	done := make(chan error, 1)
	go func() {
		exit := ByGoexit
		var err error
		defer func() {
			if exit == ByGoexit {
				err = ErrGoexit
			}
			done <- err
		}()
		func() {
			defer func() {
				Caught(t, recover(), &exit, &err)
			}()
			f()
			exit = ByReturn
		}()
		NilPanic(&exit)
	}()
	return <-done
}
