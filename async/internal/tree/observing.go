package tree

import (
	"runtime"
	"strings"
	"time"
)

// This file is what observers are told. Whatever costs something, a clock or a look at the stack, is
// done only where an observer asks for it.

// hears reports whether an observer of t asks for kind.
func hears(t *Task, kind EventKind) bool {
	return t.Owner != nil && t.Owner.Observers.ask(kind)
}

// untold reports whether nobody is told of t: nobody observes it, or only its runs are told of.
func untold(t *Task) bool {
	return t.Owner == nil || t.Owner.Observers == nil || t.More == nil || t.More.Added().Restart != nil
}

// tellQueued is called when t, which has a More, is a member of its owner, and before anything else may
// start it.
func tellQueued(t *Task) {
	if untold(t) || t.More.seen == nil {
		return
	}
	seen := t.More.seen
	seen.queued = Clock()
	if t.Owner.Observers.ask(eventQueued) {
		seen.pc = caller()
		TellObservers(t.Owner, Event{Kind: eventQueued, Of: t, Task: t.Name(), PC: seen.pc})
	}
}

// tellSkipped tells those who ask that t ends with v, and its handler was not called.
func tellSkipped(t *Task, v *Verdict) {
	if untold(t) || t.More.seen == nil || !t.Owner.Observers.ask(eventSkipped) {
		return
	}
	seen := t.More.seen
	e := Event{Kind: eventSkipped, Of: t, Task: t.Name(), Queued: Clock() - seen.queued, PC: seen.pc}
	e.Err, e.Cause, e.Echo = v.Err, v.Cause, v.Echo
	TellObservers(t.Owner, e)
}

// event returns what is told of t, whose handler has begun.
func (s *sighting) event(kind EventKind, t *Task) Event {
	e := Event{Kind: kind, Of: t, Task: t.Name(), PC: s.pc}
	if s.queued != 0 {
		e.Queued = time.Duration(s.began.Load()) - s.queued
	}
	return e
}

// BeganAt returns how long ago the handler of t began; ok is false if that is not known, for nobody
// observes t, or not on the clock of the caller.
func BeganAt(t *Task) (ago time.Duration, ok bool) {
	if t.More == nil || t.More.seen == nil {
		return 0, false
	}
	began, now := time.Duration(t.More.seen.began.Load()), Clock()
	return now - began, began != 0 && inBubble(began) == inBubble(now)
}

// shortestTold is how long a wait has to last for observers to be told of it.
const shortestTold = time.Millisecond

// hear notes when the wait begins, if an observer of me, which may be nil, asks for waits.
func (s *oneWait) hear(me *Task) {
	if me != nil && hears(me, eventWaited) {
		s.heard, s.began = true, Clock()
	}
}

// tellWait tells those who ask that t has waited since began: for the future of on, for text of part, or
// for time to pass.
func tellWait(t *Task, on *Task, part any, text string, began time.Duration) {
	took := Clock() - began
	if took < shortestTold {
		return
	}
	TellObservers(t.Owner, Event{Kind: eventWaited, Of: t, Task: t.Name(), Took: took, On: on, Part: part, Text: text})
}

// caller returns where the goroutine has come from into packages of ours: the call that starts a task. It
// is 0 if that is further up than anybody looks.
func caller() uintptr {
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if f.PC != 0 && !isOurs(f.Function) {
			return f.PC + 1 // as runtime.Callers returns it
		}
		if !more {
			return 0
		}
	}
}

// isOurs reports whether a function is one of a package that starts tasks for its callers.
func isOurs(function string) bool {
	rest, ours := strings.CutPrefix(function, "github.com/ambit-go/ambit/")
	if !ours {
		return false
	}
	for _, name := range [...]string{"async", "scheduler", "jobqueue", "batch", "proc", "service", "lease"} {
		if in, ok := strings.CutPrefix(rest, name); ok && (in[0] == '.' || strings.HasPrefix(in, "/internal/")) {
			return true
		}
	}
	return false
}
