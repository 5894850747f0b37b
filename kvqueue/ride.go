package kvqueue

import "errors"

// This file is how two transactions become one: an acknowledgement rides with the next claim
// of the handle. A consumer that is done with an item and wants the next one has both for one
// sync of the disk.

// rides are acknowledgements that wait for the next transaction of a member. They never wait
// while the member does: before it pauses they walk, which is a transaction of their own.
type rides struct {
	open    bool // the member is at work, and takes them along
	waiting []*request[settlement]
}

// ride gives those of the requests to the member that its next transaction can take along, and
// returns the others. There is a next transaction only if somebody waits for items, and if no
// request of the member stands: one that does is served by another, which knows nothing of them.
func (l *life) ride(requests []*request[settlement]) (walk []*request[settlement]) {
	m := l.q.claimsNext(l)
	if m == nil {
		return requests
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.rides.open || m.mine != "" {
		return requests
	}
	for _, r := range requests {
		if r.of.verdict == done {
			m.rides.waiting = append(m.rides.waiting, r)
		} else {
			walk = append(walk, r)
		}
	}
	m.wake()
	return walk
}

// claimsNext returns the member of a life if somebody waits for items.
func (q *Queue) claimsNext(l *life) *member {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiters) == 0 {
		return nil
	}
	return l.member
}

func (m *member) takeRides() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rides.open = true
}

func (m *member) stopRides() {
	m.mu.Lock()
	m.rides.open = false
	m.mu.Unlock()
	m.walk()
}

// walk has the acknowledgements that wait done by a transaction of their own.
func (m *member) walk() {
	m.mu.Lock()
	waiting := m.rides.waiting
	m.rides.waiting = nil
	m.mu.Unlock()
	m.settles.addAll(waiting)
}

// fitsBeside returns whether so many items can be claimed in one transaction beside the
// acknowledgements that wait, which get half of it at most.
func (m *member) fitsBeside() func(takers, items int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	limits := m.q.limits
	riding := min(len(m.rides.waiting), (limits.Guards-2)/2, limits.Writes/4)
	return func(_, items int) bool {
		return items <= m.q.maxItems && items+riding+2 <= limits.Guards && 2*(items+riding) <= limits.Writes
	}
}

// board adds as many acknowledgements to a transaction as it has room for. The others walk.
func (m *member) board(t *transaction) (aboard []*request[settlement]) {
	limits := m.q.limits
	room := max(0, min(limits.Guards-len(t.guards), (limits.Writes-len(t.writes))/2, m.q.maxItems))
	m.mu.Lock()
	n := min(room, len(m.rides.waiting))
	aboard, m.rides.waiting = m.rides.waiting[:n:n], m.rides.waiting[n:]
	m.mu.Unlock()
	m.walk()
	for _, r := range aboard {
		t.claimed(m.id, r.of.claim.key, r.of.claim.fence)
		t.gone(r.of.claim.key)
	}
	return aboard
}

// alight answers those whose transaction was done. Of one that was not, or perhaps, they walk.
func (m *member) alight(aboard []*request[settlement], err error) {
	if err == nil {
		m.settled(aboard, nil)
		return
	}
	for _, r := range aboard {
		if errors.Is(err, ErrUnknown) {
			r.of.claim.doubt(done)
		}
	}
	m.settles.addAll(aboard)
}
