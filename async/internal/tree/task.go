package tree

import (
	"fmt"
	"runtime"

	"github.com/ambit-go/ambit/async/internal/crash"
)

// This file is the goroutine of a task, the states that the task goes through, and how panics
// and Goexits of users are kept where they belong.

// Move changes t's state; moving up the list is a bug of this package.
func (t *Task) Move(to int32) {
	if from := t.State.Swap(to); from >= to {
		panic(fmt.Sprintf("async: illegal transition of %s: %d -> %d", t.Name(), from, to))
	}
}

// PublicState returns t's state as users see it.
func (t *Task) PublicState() TaskState {
	stop := t.Stopped()
	switch st := t.State.Load(); {
	case st == StateDone:
		return isDone
	case stop != nil && stop != endedStop:
		return isAborting
	case st == StateQueued:
		return isQueued
	default:
		return isRunning
	}
}

// Main is the goroutine of t. It is a frame of its own, not generic, because a
// traceback prints its receiver: that is how a straggler's stack is found, at
// no cost to the others.
//
//go:noinline
func (t *Task) Main() {
	if Exploring {
		defer Starts("task", t)()
	}
	t.Self.Run()
	runtime.KeepAlive(t) // so that the receiver is still there to be printed
}

// Rescue is deferred by what finishes t. A method of a user's error may call runtime.Goexit
// as the outcome of t is made: then t has not left its owner, which would wait for ever. It
// is not deferred by Main: measured, a waiting task would have twice the stack.
func (t *Task) Rescue() {
	if t.State.Load() == StateDone {
		return
	}
	v := Verdict{Err: ErrGoexit, Goexit: true}
	if w, ok := t.Self.(interface{ Rescue(v *Verdict) }); ok {
		w.Rescue(&v)
		return
	}
	t.EndUnrun()
	t.Self.Unrun(&v)
}

// start sets the hook going; a nil hook is none.
func (g *GoTask) start() {
	if g != nil {
		go g.Task.Main()
	}
}

// Trap makes an error of a recovered value. The value of a panic that passes through
// is not wrapped again.
func Trap(t *Task, value any) error {
	if err, is := value.(error); is && Codec.PanicIn(err) != nil {
		return err
	}
	return newPanic(t.Name(), value, crash.Stack()).AsError()
}

// Caught is deferred around a handler that has not returned if h does not say
// so: it recovers a panic, also one that was raised while Goexit ran. Nothing to recover means Goexit,
// or, if the call comes back, a panic(nil) of
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
// not. So what Caught took for a Goexit was a panic(nil), and err is its
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
	return Codec.PanicIn(err)
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
