package tree

import (
	"fmt"
	"runtime"
)

// This file is the goroutine of a task, and the states that the task goes through.

// Move changes t's state; moving up the list is a bug of this package.
func (t *Task) Move(to int32) {
	if from := t.State.Swap(to); from >= to {
		panic(fmt.Sprintf("async: illegal transition of %s: %d -> %d", t.Name(), from, to))
	}
}

// PublicState returns t's state as users see it.
func (t *Task) PublicState() TaskState {
	sg := t.Stopped()
	switch st := t.State.Load(); {
	case st == StateDone:
		return isDone
	case sg != nil && sg != endedSignal:
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
// is not deferred by main: measured, a waiting task would have twice the stack.
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
