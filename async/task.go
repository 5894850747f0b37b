package async

import (
	"fmt"
	"runtime"
)

// This file is the goroutine of a task, and the states that the task goes through.

// move changes t's state; moving up the list is a bug of this package.
func (t *task) move(to int32) {
	if from := t.state.Swap(to); from >= to {
		panic(fmt.Sprintf("async: illegal transition of %s: %d -> %d", t.name(), from, to))
	}
}

// public returns t's state as users see it.
func (t *task) public() taskState {
	sg := t.stopped()
	switch st := t.state.Load(); {
	case st == stateDone:
		return isDone
	case sg != nil && sg != endedSignal:
		return isAborting
	case st == stateQueued:
		return isQueued
	default:
		return isRunning
	}
}

// main is the goroutine of t. It is a frame of its own, not generic, because a
// traceback prints its receiver: that is how a straggler's stack is found, at
// no cost to the others.
//
//go:noinline
func (t *task) main() {
	if exploring {
		defer starts("task", t)()
	}
	t.self.run()
	runtime.KeepAlive(t) // so that the receiver is still there to be printed
}

// rescue is deferred by what finishes t. A method of a user's error may call runtime.Goexit
// as the outcome of t is made: then t has not left its owner, which would wait for ever. It
// is not deferred by main: measured, a waiting task would have twice the stack.
func (t *task) rescue() {
	if t.state.Load() == stateDone {
		return
	}
	v := verdict{err: errGoexit, goexit: true}
	if w, ok := t.self.(interface{ rescue(v *verdict) }); ok {
		w.rescue(&v)
		return
	}
	t.endUnrun()
	t.self.unrun(&v)
}

// start sets the hook going; a nil hook is none.
func (g *goTask) start() {
	if g != nil {
		go g.t.main()
	}
}
