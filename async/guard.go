package async

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file keeps users' panics and Goexits where they belong.

// panicPatience is how long a panic may wait to be raised again before it is
// printed.
const panicPatience = 10 * time.Second

// trap makes a PanicError of a recovered value. A PanicError that passes
// through is not wrapped again.
func trap(t *task, value any) error {
	if p, ok := value.(*PanicError); ok && p != nil && p.ours {
		return p
	}
	if p := t.inner.Load().passing(value); p != nil && raisedBelow() {
		return p
	}
	return &PanicError{Value: value, Stack: panicStack(), Task: t.name(), ours: true}
}

// passing returns what stands for a panic that a Scope in s has raised with value,
// nil if none has. One panic is one PanicError, however many scopes its value
// passes. That one may have been recovered long ago: see raisedBelow.
func (s *scope) passing(value any) *PanicError {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	p := s.raised
	s.mu.Unlock()
	if p == nil || !tally.Same(p.Value, value) {
		return nil
	}
	return p
}

// raising notes that a Scope in s is about to raise the value of p.
func (s *scope) raising(p *PanicError) {
	if s.t.kind == kindRoot {
		return // nobody recovers it on behalf of a root
	}
	s.mu.Lock()
	s.raised = p
	s.mu.Unlock()
}

// firstPanic records a panic of the handler of s, and returns the one that s will
// raise: p, unless a task of s has panicked before.
func (s *scope) firstPanic(p *PanicError) *PanicError {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tallyLocked().Record(&tally.Fact{Class: tally.Panic, Err: p, GoesOn: true})
	return s.tally.FirstPanic().(*PanicError)
}

// tellPanic tells the observers of a panic, once on its way up.
func (s *scope) tellPanic(p *PanicError) {
	if s.observers != nil && p.observed.CompareAndSwap(false, true) {
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
	if p.printed.CompareAndSwap(false, true) {
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

// asked returns what ask says, which calls Is, As and Unwrap of err and of what it
// wraps. One of a user that calls Goexit would take the goroutine of a task along,
// which has still to settle: so those are called on a goroutine of their own. What
// panics, or does not come back, says false.
func asked(err error, ask func() bool) (is bool) {
	if !hasForeign(err, maxListed) {
		return ask()
	}
	_ = guard("method of an error", func() { is = ask() })
	return is
}

// hasForeign reports whether err, or what it wraps, has methods that errors.Is and
// the like call and that are neither ours nor the standard library's. It gives up
// after so many that are wrapped: then there may be some.
func hasForeign(err error, most int) bool {
	for ; err != nil; most-- {
		many, wrapsMany := err.(interface{ Unwrap() []error })
		one, wrapsOne := err.(interface{ Unwrap() error })
		_, is := err.(interface{ Is(error) bool })
		_, as := err.(interface{ As(any) bool })
		switch {
		case !wrapsMany && !wrapsOne && !is && !as:
			return false
		case most == 0 || !isKnown(reflect.TypeOf(err)):
			return true
		case wrapsMany:
			return slices.ContainsFunc(many.Unwrap(), func(err error) bool { return hasForeign(err, most-1) })
		case !wrapsOne:
			return false
		}
		err = one.Unwrap()
	}
	return false
}

// isKnown reports whether a type of error is ours or the standard library's. A type
// of a user that embeds one of those is the user's.
func isKnown(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[PanicError]() {
		return false // it asks what went wrong beside it
	}
	switch t.PkgPath() {
	case "errors", "fmt", "context", "net", "net/url", "os", "os/exec", "io/fs", "syscall", "strconv":
		return true
	}
	return strings.HasPrefix(t.PkgPath()+".", ownFrames)
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
