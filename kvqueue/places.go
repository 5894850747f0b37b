package kvqueue

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
)

// This file keeps the number of places of a session in the store, which is what another that assigns
// knows of its wants.

// need is how many places this session is to have: those of the items that are worked on, or wait for
// their [RetryDelay], and those that are waited for. If nobody waits it is to have no more than it has:
// nothing would come of them.
func (m *member) need() int {
	wanted := m.q.wanted()
	m.session.mu.Lock()
	delayed := len(m.session.delayed)
	m.session.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	n := max(0, int(m.session.held.Load())) + delayed + max(wanted, m.arrivedLocked())
	if wanted == 0 && m.told >= 0 {
		return min(n, m.told)
	}
	return n
}

// tell has the store know how many places this session has, and reports whether it did not know.
func (m *member) tell(ctx context.Context, places int) (did bool, err error) {
	w, told := m.change(places, false)
	if told == nil {
		return false, nil
	}
	rev, err := m.q.kv.Commit(ctx, []Guard{m.lives()}, []Write{w})
	told(rev, err)
	return true, ignore(err)
}

// change returns the write that changes how many places the store knows, and what to call with its
// outcome; none if there is nothing to change, or another changes it.
func (m *member) change(places int, lower bool) (w Write, told func(rev Rev, err error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.telling || m.told == places || lower && (m.told < places || m.closing.Load()) {
		return w, nil
	}
	m.telling = true
	w = Write{Key: m.q.lay.session("r", m.id), Delete: places == 0}
	if places > 0 {
		w.Value, w.Session = binary.AppendUvarint(nil, uint64(places)), m.s
	}
	return w, func(rev Rev, err error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.telling = false
		switch {
		case err == nil:
			m.toldLocked(places, rev)
		case errors.Is(err, ErrUnknown):
			m.told = -1
		}
		if err == nil {
			m.wake()
		}
	}
}

// toldLocked notes how many places of this session the store knows since a revision. It may be by a
// transaction whose answer was lost, and that was done late.
func (m *member) toldLocked(places int, since Rev) {
	if since > m.toldAt {
		m.told, m.toldAt = places, since
	}
}

// commitEnd does a transaction that ends claims. Its session has fewer places from then on, if that is so:
// else another item would come that nobody waits for. The smaller number is the first of the writes: a store
// that shows changes in their order shows it before the ends of the claims, which are free places. (On etcd, which
// has a watch for each prefix, either may be seen first; then an item comes for nobody at times, and goes back.)
// If it is refused with that, as a full store takes only what makes room, it is done without.
func (l *session) commitEnd(ctx context.Context, t *transaction) error {
	w, told := l.lower(t)
	if told == nil {
		_, err := l.q.kv.Commit(ctx, t.guards, t.writes)
		return err
	}
	guards := t.guards
	if !w.Delete { // nor after the handle has given up its places
		guards = append(slices.Clone(guards), Guard{Key: w.Key, Is: Present})
	}
	rev, err := l.q.kv.Commit(ctx, guards, append([]Write{w}, t.writes...))
	told(rev, err)
	if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNoSpace) {
		return err
	}
	unknown := errors.Is(err, ErrUnknown)
	_, err = l.q.kv.Commit(ctx, t.guards, t.writes)
	if err == nil {
		return nil
	}
	return unsure(unknown, err)
}

// lower returns the write with which this session has fewer places, as change does.
func (l *session) lower(t *transaction) (w Write, told func(rev Rev, err error)) {
	l.q.mu.Lock()
	m := l.member
	l.q.mu.Unlock()
	if m != nil && len(t.writes) < l.q.limits.Writes && len(t.guards) < l.q.limits.Guards {
		return m.change(m.need(), true)
	}
	return w, nil
}
