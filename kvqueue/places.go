package kvqueue

import (
	"context"
	"encoding/binary"
	"errors"
)

// This file keeps the number of places of a session in the store, which is what another that assigns
// knows of its wants.

// need is how many places this session is to have: those of the items that are worked on, or wait for
// their [RetryDelay], and those that are waited for.
func (m *member) need() int {
	wanted := m.q.wanted()
	m.session.mu.Lock()
	delayed := len(m.session.delayed)
	m.session.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(0, int(m.session.held.Load())) + delayed + max(wanted, m.arrivedLocked())
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
