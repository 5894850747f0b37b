package locks

import "context"

// heldKey is the key of the holds of a context.
type heldKey struct{}

// A heldList is what a context holds, the innermost first.
type heldList struct {
	hold  *Hold
	outer *heldList
}

// hold returns a context that holds h, beside what ctx holds.
func hold(ctx context.Context, h *Hold) context.Context {
	outer, _ := ctx.Value(heldKey{}).(*heldList)
	return context.WithValue(ctx, heldKey{}, &heldList{h, outer})
}

// From returns the lock that the body of ctx runs under, the innermost of several; nil if
// there is none. It may have ended: a context may outlive its body, by
// [context.WithoutCancel] or [async.Detach]; [Hold.Err] tells.
func From(ctx context.Context) *Hold {
	if l, ok := ctx.Value(heldKey{}).(*heldList); ok {
		return l.hold
	}
	return nil
}

// FromKey returns the lock of a key that the body of ctx runs under, as [From] does. In
// [Manager.WithAll] there are several.
func FromKey(ctx context.Context, key string) *Hold {
	return find(ctx, func(h *Hold) bool { return h.name.Key == key })
}

func find(ctx context.Context, is func(*Hold) bool) *Hold {
	l, _ := ctx.Value(heldKey{}).(*heldList)
	for ; l != nil; l = l.outer {
		if is(l.hold) {
			return l.hold
		}
	}
	return nil
}

// around returns the hold of ctx that a call is to run under; nil if it has to ask for
// one of its own. A hold that has ended is none: what it had in the store ends by itself,
// so nobody waits for themselves for ever.
func (m *Manager) around(ctx context.Context, name Name, c *call) (*Hold, error) {
	h := find(ctx, func(h *Hold) bool { return h.m.store == m.store && h.name == name })
	if h == nil {
		return nil, nil
	}
	if err := h.Err(); err != nil {
		if _, lost := err.(*LostError); lost && c.reentrant {
			return nil, err
		}
		return nil, nil
	}
	if !c.reentrant || h.c.kind != c.kind || c.kind == Semaphore || h.c.shared && !c.shared {
		return nil, ErrReentrant
	}
	return h, nil
}
