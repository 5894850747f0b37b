package tree

import "github.com/ambit-go/ambit/async/internal/slots"

// This file is what a look tells of Limits, and of executors.

// A Limiter stands for a Limit, one and the same for all that it bounds.
type Limiter = *slots.Limiter[*Task, *Waiter]

// A Turn is where a task stands that a Limit bounds.
type Turn struct {
	At    Limiter   // at which it queues; nil: at none
	Holds []Limiter // of which it holds a slot
	Lent  bool      // it waits, and has lent its slots
}

// TurnOf writes to x where t stands. It reports false if no Limit bounds t. x may be used again.
func TurnOf(t *Task, x *Turn) bool {
	if t.More == nil || t.More.slot == nil {
		return false
	}
	l := t.Owner.Limit
	l.mu.Lock()
	defer l.mu.Unlock()
	var state slots.State
	state, x.At, x.Holds = t.More.slot.Stands(x.Holds[:0])
	x.Lent = state == slots.Lent
	return true
}

// LimitIn returns the limiter that bounds what is started in t, if t has brought that, how many slots
// it has, and how many of them are held.
func LimitIn(t *Task) (l Limiter, size, held int) {
	s := t.Inner.Load()
	if s == nil || s.opts == nil || s.opts.Limit == 0 || t.Owner != nil && t.Owner.Limit == s.Limit {
		return nil, 0, 0
	}
	s.Limit.mu.Lock()
	defer s.Limit.mu.Unlock()
	size, held = s.Limit.Core.Held()
	return s.Limit.Core, size, held
}

// ExecutorOf returns what t was given to, or is to be; nil: t has a goroutine of its own.
func ExecutorOf(t *Task) any {
	if t.More == nil || t.More.Delivery == nil {
		return nil
	}
	return t.More.Delivery.Executor
}

// IsDelivered reports whether t, which has an executor, was begun, skipped or refused by that.
func IsDelivered(t *Task) bool { return t.More.Delivery.decided.Load() }
