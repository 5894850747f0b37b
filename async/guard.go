package async

import "time"

// This file keeps users' panics and Goexits where they belong.

// panicPatience is how long a panic may wait to be raised again before it is
// printed.
const panicPatience = 10 * time.Second

// trap makes a PanicError of a recovered value. A PanicError that passes
// through is not wrapped again.
func trap(t *task, value any) error {
	if p, ok := value.(*PanicError); ok && p.isOurs() {
		return p
	}
	return newPanicError(t.name(), value)
}

// tellPanic tells the observers of a panic, once on its way up.
func (s *scope) tellPanic(p *PanicError) {
	if s.observers != nil && p.of.observed.CompareAndSwap(false, true) {
		s.tell(Event{Kind: EventPanic, Task: p.Task, Err: p})
	}
}

// alarmLocked has the panic that s is to raise printed if that takes long.
func (s *scope) alarmLocked() {
	p := s.tally.FirstPanic()
	if p == nil || s.alarm != nil || s.t.kind == kindRoot {
		return
	}
	s.alarm = time.AfterFunc(panicPatience, func() { s.printLate(p.(*PanicError)) })
}

// printLate prints a panic that has waited long for its scope to end, once.
func (s *scope) printLate(p *PanicError) {
	if p.of.printed.CompareAndSwap(false, true) {
		s.home.printLate(p, s.t.name(), s.stragglers())
	}
}

// caught is deferred around a handler that has not returned if how does not say
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

// asPanic returns the PanicError that err is.
func asPanic(h exitKind, err error) *PanicError {
	if h != byPanic {
		return nil
	}
	return err.(*PanicError)
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
				err = ErrGoexit
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
