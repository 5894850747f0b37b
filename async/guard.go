package async

import "github.com/ambit-go/ambit/async/internal/crash"

// This file keeps users' panics and Goexits where they belong.

// trap makes an error of a recovered value. That of a panic which passes
// through is not wrapped again.
func trap(t *task, value any) error {
	if err, is := value.(error); is && words.PanicIn(err) != nil {
		return err
	}
	return newPanic(t.name(), value, crash.Stack()).asError()
}

// caught is deferred around a handler that has not returned if h does not say
// so: it recovers a panic, also one that was raised while Goexit ran. That
// nothing is recovered means Goexit, or, if the call comes back, a panic(nil) of
// old; see nilPanic. The stack is still there now, so err is set for that.
func caught(t *task, value any, h *exitKind, err *error) {
	if *h == byReturn {
		return
	}
	*err = trap(t, value)
	if value != nil {
		*h = byPanic
	}
}

// nilPanic is called after a handler's call has come back, which Goexit does
// not. So what caught took for a Goexit was a panic(nil), and err is its
// PanicError.
func nilPanic(h *exitKind) {
	if *h == byGoexit {
		*h = byPanic
	}
}

// asPanic returns the panic that err stands for.
func asPanic(h exitKind, err error) *panicRecord {
	if h != byPanic {
		return nil
	}
	return words.PanicIn(err)
}

// guard calls f on a goroutine of its own and waits for it, so that neither a
// panic nor a Goexit of what users gave us takes the caller along. It is used
// for observers, discards and the like, not for handlers.
func guard(name string, f func()) error {
	t := &task{more: &more{taskOptions: taskOptions{name: name}}}
	done := make(chan error, 1)
	go func() {
		exit := byGoexit
		var err error
		defer func() {
			if exit == byGoexit {
				err = errGoexit
			}
			done <- err
		}()
		func() {
			defer func() {
				caught(t, recover(), &exit, &err)
			}()
			f()
			exit = byReturn
		}()
		nilPanic(&exit)
	}()
	return <-done
}
