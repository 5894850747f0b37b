package tree

import (
	"context"
	"time"
)

// This file starts tasks, and says where their contexts come from.
//
// A task belongs to the scope that it was started in, which joins it. Its context is a child
// of the ctx that it was started with, and of nothing else. Most tasks are started with the
// own ctx of their scope, or with one that only adds values: they are cancelled with the
// scope. Another ctx, which was derived by WithTimeout, WithCancel or WithoutCancel, decides
// alone.

// Start registers t with its owner, which is plain, and sets it going. It reports false, and
// nothing runs, if the owner has ended.
func (t *Task) Start(owner *Scope) bool {
	t.Owner = owner
	if !owner.Add(t) {
		return false
	}
	go t.Main()
	return true
}

// StartWith is Start for a task that may need a More. ctx is nil if t was started with the
// owner's own context. m is what MoreIn has returned, with the options of t.
func StartWith(t *Task, owner *Scope, ctx context.Context, m *More) bool {
	if m == nil {
		return t.Start(owner)
	}
	t.Owner = owner
	m.Inherit(owner)
	t.Equip(m, ctx)
	if !owner.Add(t) {
		return false
	}
	t.Begin()
	return true
}

// Begin sets t, which is a member of its owner and has a More, going.
func (t *Task) Begin() {
	t.WatchStops()
	tellQueued(t)
	switch {
	case t.Owner.Limit != nil:
		t.submit()
	case t.More.Delivery != nil:
		launch(t)
	default:
		go t.Main()
	}
}

// WatchStops is called when t, which has a More, is a member of its owner, before its
// handler is called.
func (t *Task) WatchStops() {
	if w := t.More.Added().Stops; w != nil {
		w.Watch(t)
	}
}

// Equip gives t, which has not been started and has an owner, what few tasks
// have. ctx is nil if t is started with its owner's own. Such a task is seen as
// queued until its handler begins.
func (t *Task) Equip(m *More, ctx context.Context) {
	t.More = m
	if m.Discard != nil && t.Kind == KindGo {
		panic("async: Go with OnDiscard: the task gives no value; start it with Execute")
	}
	if r := m.Added().Restart; r != nil {
		r.StandBefore(t, m)
	}
	t.setOrigin(ctx)
	t.State.Store(StateQueued)
}

// MoreIn returns what t needs beside itself if it is started in owner, nil if that is
// nothing. needed: it was started with a ctx or options of its own.
func MoreIn(owner *Scope, t *Task, needed bool) (m *More) {
	switch {
	case owner.Limit != nil:
		m = owner.Limit.newMoreWithSlot(t, owner.depth)
	case needed || !owner.IsPlain():
		m = new(More)
	default:
		return nil
	}
	m.Priority = owner.Priority
	return m
}

// Inherit is called when m, of a task that is started in owner, has its options.
func (m *More) Inherit(owner *Scope) {
	if m.On == nil {
		m.On = owner.On
	}
	if m.On != nil {
		m.Delivery = &Delivery{Executor: m.On}
	}
}

// Enter is called by a task's goroutine before its handler.
func (t *Task) Enter() {
	m := t.More
	if m == nil {
		return
	}
	if m.OnAbort == nil && m.Timeout == 0 && m.Added().Heart == nil {
		t.Move(StateRunning)
	} else {
		h := t.Scope()
		if m.Timeout != 0 {
			h.LimitTime(m.Timeout)
		}
		h.Mu.Lock()
		t.Move(StateRunning)
		var hook func()
		if m.OnAbort != nil {
			hook = m.OnCancel(h)
		}
		h.Mu.Unlock()
		if hook != nil {
			hook()
		}
		if beat := m.Added().Heart; beat != nil {
			beat.Start(h)
		}
	}
	TellStart(t)
}

// setOrigin is called when t is made, after its owner and its options are set.
// ctx is what it was started with, nil if that is the owner's own ctx.
func (t *Task) setOrigin(ctx context.Context) {
	m := t.More
	gives := false
	if t.Owner != nil && t.Owner.Observers != nil {
		m.seen, gives = new(sighting), t.Owner.Observers.ask(givesValues)
	}
	if m.differs = ctx != nil || m.shielded || m.Timeout != 0 || gives; !m.differs {
		return
	}
	o := &m.Origin
	if t.Owner != nil {
		*o = *t.Owner.from
	}
	if ctx != nil {
		o.values = ctx
		m.derived = !m.shielded && !endsWith(t.Owner, ctx)
	}
	// o.task is t if something else than our walk may cancel t: a shielded stretch
	// by Shutdown and its time limit, a derived ctx by itself, and any task by a
	// time limit of its own.
	switch {
	case m.shielded:
		o.task, o.deadline = t, time.Time{}
	case m.derived:
		o.task = t
		if ctx.Done() == nil && m.Timeout == 0 {
			o.task = nil // never cancelled
		}
		o.deadline, _ = ctx.Deadline()
	case m.Timeout != 0:
		o.task = t
	}
	if gives {
		o.values = newGiven(o.values)
	}
}

// endsWith reports whether ctx, with which something is started in s, is done
// exactly when s is: it is derived from the ctx of s by adding values only.
func endsWith(s *Scope, ctx context.Context) bool {
	if s == nil || s == &process.Scope {
		return false
	}
	done := ctx.Done()
	return done != nil && done == s.Task.Done()
}
