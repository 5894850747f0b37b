package async

import (
	"fmt"
)

// endStops is called when the task of m, which may be nil, ends; see stops.
func (m *more) endStops(onItsOwn bool) {
	if m != nil && m.stops != nil {
		m.stops.end(onItsOwn)
	}
}

// leave ends t's membership of its owner: the last thing a task does.
func (t *task) leave() {
	t.owner.leave(t)
	t.retire()
}

// observed tells the observers that t has ended.
func (t *task) observed(v *verdict, sg *stopError) {
	if t.owner == nil || t.owner.observers == nil || t.more == nil || t.more.restart != nil {
		return
	}
	t.retire() // observers are no part of the handler
	t.owner.tell(t.endEvent(v, sg))
}

func (t *task) endEvent(v *verdict, sg *stopError) Event {
	e := Event{Kind: EventEnd, Task: t.name(), Duration: clock() - t.more.started, Err: v.err}
	if sg != nil {
		e.Cause = sg.cause
	}
	return e
}

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

// givesValue reports whether somebody is to be given what the handler of t returns
// beside an error.
func (t *task) givesValue() bool {
	switch t.kind {
	case kindRun:
		return t.owner.t.givesValue()
	case kindFuture, kindContender, kindWorker:
		return !t.self.(interface{ givesNothing() bool }).givesNothing()
	}
	return false
}
