package async

import (
	"context"
	"time"
)

// This file says where a task's context comes from: what it is a child of.
//
// A task belongs to the scope that it was started in, which joins it. Its
// context is a child of the ctx that it was started with, and of nothing else.
// Most tasks are started with the own ctx of their scope, or with one that
// only adds values: they are cancelled with the scope. Another ctx, which was
// derived by WithTimeout, WithCancel or WithoutCancel, decides alone.

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
		m.derived = !m.shielded && !t.owner.endsWith(ctx)
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
func (s *scope) endsWith(ctx context.Context) bool {
	if s == nil || s == &process.s {
		return false
	}
	done := ctx.Done()
	return done != nil && done == s.t.Done()
}
