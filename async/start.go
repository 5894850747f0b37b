package async

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

// start registers t with its owner and sets it going. ctx is nil if t was
// started with the owner's own context. m is what moreIn has returned, with the options
// of t. It reports false, and nothing runs, if the owner has ended.
func (t *task) start(owner *scope, ctx context.Context, m *more) bool {
	t.owner = owner
	if m != nil {
		m.inherit(owner)
		t.equip(m, ctx)
	}
	if !owner.add(t) {
		return false
	}
	if t.more == nil {
		go t.main()
	} else {
		t.begin()
	}
	return true
}

// begin sets t, which is a member of its owner and has more, going.
func (t *task) begin() {
	t.watchStops()
	switch {
	case t.owner.limit != nil:
		t.submit()
	case t.more.delivery != nil:
		launch(t)
	default:
		go t.main()
	}
}

// watchStops is called when t, which has more, is a member of its owner, before its
// handler is called.
func (t *task) watchStops() {
	if w := t.more.added().stops; w != nil {
		w.watch(t)
	}
}

// equip gives t, which has not been started and has an owner, what few tasks
// have. ctx is nil if t is started with its owner's own. Such a task is seen as
// queued until its handler begins.
func (t *task) equip(m *more, ctx context.Context) {
	t.more = m
	if m.discard != nil && t.kind == kindGo {
		panic("async: Go with OnDiscard: the task gives no value; start it with Execute")
	}
	if r := m.added().restart; r != nil {
		r.standBefore(t, m)
	}
	t.setOrigin(ctx)
	t.state.Store(stateQueued)
}

// moreIn returns what t needs beside itself if it is started in owner, nil if that is
// nothing. needed: it was started with a ctx or options of its own.
func moreIn(owner *scope, t *task, needed bool) (m *more) {
	switch {
	case owner.limit != nil:
		m = owner.limit.newMoreWithSlot(t, owner.depth)
	case needed || owner.observers != nil || owner.on != nil:
		m = new(more)
	default:
		return nil
	}
	m.priority = owner.priority
	return m
}

// inherit is called when m, of a task that is started in owner, has its options.
func (m *more) inherit(owner *scope) {
	if m.on == nil {
		m.on = owner.on
	}
	if m.on != nil {
		m.delivery = &delivery{ex: m.on}
	}
}

// enter is called by a task's goroutine before its handler.
func (t *task) enter() {
	m := t.more
	if m == nil {
		return
	}
	if m.onAbort == nil && m.timeout == 0 && m.added().heart == nil {
		t.move(stateRunning)
	} else {
		h := t.scope()
		if m.timeout != 0 {
			h.limitTime(m.timeout)
		}
		h.mu.Lock()
		t.move(stateRunning)
		var hook func()
		if m.onAbort != nil {
			hook = m.onCancel(h)
		}
		h.mu.Unlock()
		if hook != nil {
			hook()
		}
		if beat := m.added().heart; beat != nil {
			beat.start(h)
		}
	}
	tellStart(t)
}

// setOrigin is called when t is made, after its owner and its options are set.
// ctx is what it was started with, nil if that is the owner's own ctx.
func (t *task) setOrigin(ctx context.Context) {
	m := t.more
	if m.differs = ctx != nil || m.shielded || m.timeout != 0; !m.differs {
		return
	}
	o := &m.origin
	if t.owner != nil {
		*o = *t.owner.from
	}
	if ctx != nil {
		o.values = ctx
		m.derived = !m.shielded && !endsWith(t.owner, ctx)
	}
	// o.task is t if something else than our walk may cancel t: a shielded stretch
	// by Shutdown and its time limit, a derived ctx by itself, and any task by a
	// time limit of its own.
	switch {
	case m.shielded:
		o.task, o.deadline = t, time.Time{}
	case m.derived:
		o.task = t
		if ctx.Done() == nil && m.timeout == 0 {
			o.task = nil // never cancelled
		}
		o.deadline, _ = ctx.Deadline()
	case m.timeout != 0:
		o.task = t
	}
}

// endsWith reports whether ctx, with which something is started in s, is done
// exactly when s is: it is derived from the ctx of s by adding values only.
func endsWith(s *scope, ctx context.Context) bool {
	if s == nil || s == &process.s {
		return false
	}
	done := ctx.Done()
	return done != nil && done == s.t.Done()
}
