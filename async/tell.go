package async

// This file tells the observers of a scope.

// tell calls every observer from the inside out; what goes wrong in one of
// them is an error of s.
func (s *scope) tell(e Event) {
	for o := s.observers; o != nil; o = o.outer {
		if err := guard("observer", func() { o.o.Observe(e) }); err != nil {
			s.recordHookError(err)
		}
	}
}

// tellPanic tells the observers of a panic, once on its way up.
func (s *scope) tellPanic(p *PanicError) {
	if s.observers != nil && p.of.observed.CompareAndSwap(false, true) {
		s.tell(Event{Kind: EventPanic, Task: p.Task, Err: p})
	}
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

// observe tells the observers that t starts.
func (t *task) observe() {
	if t.owner.observers != nil && t.more.restart == nil { // they are told of its runs
		t.more.started = clock()
		t.owner.tell(Event{Kind: EventStart, Task: t.name()})
	}
}
