package kvqueue

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
)

// This file keeps the number of places of a session in the store, which is what another that assigns
// knows of its wants.

// A demand is how many places a session has. A call that gets fewer items than it would take is served, so
// that its other places are none any more, before the store knows of that.
type demand struct {
	places int
	batch  int // how many items each of the calls that wait would take; if that differs, the least of it
	rev    Rev // since when this is so
}

// given is what is left of a demand after so many items were given to the session in one transaction.
func (d demand) given(items int) demand {
	if d.batch > 1 {
		d.places -= (d.batch - items%d.batch) % d.batch
	}
	return d
}

// need is how many places this session is to have: those of the items that are worked on, or wait for
// their [RetryDelay], and those that are waited for. If nobody waits it is to have no more than it has:
// nothing would come of them.
func (m *member) need() demand {
	wanted, batch := m.q.wanted()
	m.session.mu.Lock()
	delayed := len(m.session.delayed)
	m.session.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	d := demand{max(0, int(m.session.held.Load())) + delayed + max(wanted, m.arrivedLocked()), batch, 0}
	if wanted == 0 && m.told.places >= 0 {
		d.places, d.batch = min(d.places, m.told.places), m.told.batch
	}
	return d
}

// keeps is what this session needs, and the places of claims that are being ended: the transaction that ends them gives
// these up. If another did, the claims could be seen to end before, and items would come for nobody.
func (m *member) keeps() demand {
	d := m.need()
	m.mu.Lock()
	defer m.mu.Unlock()
	d.places = max(d.places, min(m.told.places, len(m.claims[m.id])))
	return d
}

// tell has the store know how many places this session has, and reports whether it did not know.
func (m *member) tell(ctx context.Context, d demand) (did bool, err error) {
	w, told := m.change(d, false)
	if told == nil {
		return false, nil
	}
	rev, err := m.q.kv.Commit(ctx, []Guard{m.lives()}, []Write{w})
	told(rev, err)
	return true, ignore(err)
}

// change returns the write that changes how many places the store knows, and what to call with its
// outcome; none if there is nothing to change, or another changes it.
func (m *member) change(d demand, lower bool) (w Write, told func(rev Rev, err error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	same := m.told.places == d.places && (d.places == 0 || (m.told.batch == d.batch || lower) && m.fewer <= m.told.rev)
	if m.telling || same || lower && (m.told.places < d.places || m.closing.Load()) {
		return w, nil
	}
	m.telling = true
	w = Write{Key: m.q.lay.session("r", m.id), Delete: d.places == 0}
	if d.places > 0 {
		w.Value, w.Session = binary.AppendUvarint(binary.AppendUvarint(nil, uint64(d.places)), uint64(d.batch)), m.s
	}
	return w, func(rev Rev, err error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.telling = false
		switch {
		case err == nil:
			d.rev = rev
			m.toldLocked(d)
		case errors.Is(err, ErrUnknown):
			m.told.places = -1
		}
		if err == nil {
			m.wake()
		}
	}
}

// toldLocked notes what the store knows of this session. It may be by a
// transaction whose answer was lost, and that was done late.
func (m *member) toldLocked(d demand) {
	if d.rev > m.told.rev {
		m.told = d
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
