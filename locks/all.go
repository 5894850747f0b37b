package locks

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// WithAll runs body while this process holds the mutexes of all keys, as [Manager.With]
// does with one. They are taken one after another in the order of their bytes, whatever
// the order of keys, so two calls never wait for each other; a key that is named twice is
// taken once. Those that are held already are renewed meanwhile. The loss of one cancels
// all. They are given back in reverse; if the store does not answer, in 10 s at most.
//
// [Wait] is the time for all of them. [FromKey] finds each in the ctx of body. A call inside
// of With for a lock that is less than the one it has may wait for somebody who waits for
// it: only what one call takes is in order.
func (m *Manager) WithAll(ctx context.Context, keys []string, body func(ctx context.Context) error, options ...LockOption) error {
	if body == nil {
		panic("locks: a nil body: pass what is to be called")
	}
	calls, err := m.allCalls(keys, options)
	if err != nil {
		return err
	}
	var held, own []*Hold
	for _, k := range calls {
		h, err := m.around(ctx, k.name, k.c)
		if err != nil {
			return err
		}
		if h != nil {
			held = append(held, h)
		}
	}
	own, err = m.acquireAll(ctx, calls, held)
	if err != nil {
		return err
	}
	return runUnder(ctx, body, own, append(held, own...)...)
}

// keyCall is one lock that is asked for.
type keyCall struct {
	name Name
	c    *call
}

// allCalls returns what is to be asked for, in order.
func (m *Manager) allCalls(keys []string, options []LockOption) ([]keyCall, error) {
	switch {
	case m.traits.Simple:
		return nil, &ValidationError{"WithAll", fmt.Sprintf("%s cannot hold several locks for one body", m.traits.Name)}
	case len(keys) == 0 || len(keys) > maxKeys:
		return nil, &ValidationError{"keys", fmt.Sprintf("there are %d, and it takes from 1 to %d", len(keys), maxKeys)}
	}
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	var calls []keyCall
	together := newRun(notBegun)
	for _, key := range slices.Compact(sorted) {
		c, err := m.call(key, options)
		if err != nil {
			return nil, err
		}
		if c.kind != Mutex {
			return nil, &ValidationError{"kind", "WithAll takes mutexes"}
		}
		c.run = together
		calls = append(calls, keyCall{m.name(key), c})
	}
	return calls, nil
}

// acquireAll takes those locks that are not among held. If one cannot be had, or one is
// lost meanwhile, the others are given back.
func (m *Manager) acquireAll(ctx context.Context, calls []keyCall, held []*Hold) (own []*Hold, err error) {
	started := m.clock.Now()
	waiting, stop := under(ctx, held)
	returned := false
	defer func() {
		stop()
		if !returned { // by a panic, of the store or of an observer
			_ = m.giveUp(ctx, own, nil)
		}
	}()
	for _, k := range calls {
		if slices.ContainsFunc(held, func(h *Hold) bool { return h.name == k.name }) {
			continue
		}
		if k.c.wait > 0 {
			k.c.wait = max(k.c.wait-(m.clock.Now()-started), time.Nanosecond)
		}
		h, err := m.acquire(waiting, k.name, k.c)
		if err != nil {
			returned = true
			return nil, m.giveUp(ctx, own, err)
		}
		h.scoped = true
		own = append(own, h)
		var stopThis func()
		waiting, stopThis = h.lease.Context(waiting)
		defer stopThis()
	}
	if len(own) > 0 {
		own[0].run.say(m.clock.Now()) // the body begins
	}
	returned = true
	return own, nil
}

// giveUp gives back what was taken for a call that fails with err.
func (m *Manager) giveUp(ctx context.Context, own []*Hold, err error) error {
	for _, h := range own {
		if lost := h.end(); lost != nil {
			err = lost
		}
	}
	if failed := giveBackAll(ctx, own); failed != nil {
		err = both(err, failed)
	}
	return err
}
