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
func (t *task) public() State {
	sg := t.stopped()
	switch st := t.state.Load(); {
	case st == stateDone:
		return StateDone
	case sg != nil && sg != endedSignal:
		return StateAborting
	case st == stateQueued:
		return StateQueued
	default:
		return StateRunning
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
	returned := false
	defer func() {
		if !returned {
			t.rescue()
		}
	}()
	t.self.run()
	returned = true
	runtime.KeepAlive(t) // so that the receiver is still there to be printed
}

// rescue is called when the goroutine of t ends by runtime.Goexit. Nothing is left to be
// done if that was called by the handler. If a method of a user's error has called it as
// the outcome of t was made, t has not left its owner, which would wait for ever.
func (t *task) rescue() {
	if t.state.Load() == stateDone {
		return
	}
	v := verdict{err: ErrGoexit, goexit: true}
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
