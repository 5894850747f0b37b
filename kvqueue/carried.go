package kvqueue

import "errors"

// This file is how two transactions become one: an acknowledgement is carried by the next claim
// of the handle. A consumer that is done with an item and wants the next one has both for one
// sync of the disk.

// carried are acknowledgements that wait for the next transaction of a member. They never wait
// while the member does: before it pauses they are settled by a transaction of their own.
type carried struct {
	open    bool // the member is at work, and takes them along
	spared  bool // they were left to the next step, as the bell had rung; not twice
	waiting []*request[settlement]
}

// handToClaim gives those of the requests to the member that its next transaction can take along, and
// returns the others. There is a next transaction only if somebody waits for items, and if the
// member claims for itself: another that assigns knows nothing of them.
func (l *session) handToClaim(requests []*request[settlement]) (alone []*request[settlement]) {
	m := l.q.claimsNext(l)
	if m == nil {
		return requests
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.carried.open || m.q.update == nil && !m.assignsLocked() {
		return requests
	}
	for _, r := range requests {
		if r.of.verdict == done {
			m.carried.waiting = append(m.carried.waiting, r)
		} else {
			alone = append(alone, r)
		}
	}
	m.wake()
	return alone
}

// claimsNext returns the member of a session if somebody waits for items.
func (q *Queue) claimsNext(l *session) *member {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiters) == 0 {
		return nil
	}
	return l.member
}

func (m *member) carry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.carried.open = true
}

func (m *member) carryNoMore() {
	m.mu.Lock()
	m.carried.open = false
	m.mu.Unlock()
	m.settleCarried()
}

// settleBeforePause is settleCarried for a member that is about to pause. If the bell has rung since it looked who waits it does
// not pause, and the next step may take along what came with that.
func (m *member) settleBeforePause() {
	m.mu.Lock()
	m.carried.spared = !m.carried.spared && len(m.carried.waiting) > 0 && len(m.bell) > 0
	spared := m.carried.spared
	m.mu.Unlock()
	if !spared {
		m.settleCarried()
	}
}

// settleCarried has the acknowledgements that wait done by a transaction of their own.
func (m *member) settleCarried() {
	m.mu.Lock()
	waiting := m.carried.waiting
	m.carried.waiting = nil
	m.mu.Unlock()
	m.settles.addAll(waiting)
}

// fitsBeside returns whether items of such a weight can be claimed in one transaction beside the
// acknowledgements that wait, which get half of it at most.
func (m *member) fitsBeside() func(takers, items int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	limits := m.q.limits
	waiting := min(weigh(m.carried.waiting), (limits.Guards-2)/2, limits.Writes/4)
	return func(takers, items int) bool {
		return items <= m.q.maxItems && items+takers+waiting+2 <= limits.Guards && 2*(items+waiting) <= limits.Writes
	}
}

// addCarried adds as many acknowledgements to a transaction as it has room for. The others
// have one of their own.
func (m *member) addCarried(t *transaction) (along []*request[settlement]) {
	limits := m.q.limits
	room := max(0, min(limits.Guards-len(t.guards), (limits.Writes-len(t.writes))/2, m.q.maxItems))
	m.mu.Lock()
	n := fitting(m.carried.waiting, room)
	along, m.carried.waiting = m.carried.waiting[:n:n], m.carried.waiting[n:]
	m.carried.spared = false
	m.mu.Unlock()
	m.settleCarried()
	for _, r := range along {
		t.claimed(m.id, r.of.claim.key, r.of.claim.fence, r.of.claim.rec.group)
		t.gone(r.of.claim.key)
	}
	return along
}

// answerCarried answers those whose transaction was done. Items of one that was not done, or
// perhaps, are settled by one of their own.
func (m *member) answerCarried(along []*request[settlement], err error) {
	if err == nil {
		m.settled(along, nil)
		return
	}
	for _, r := range along {
		if errors.Is(err, ErrUnknown) {
			r.of.claim.doubt(done)
			r.of.claim.late = true
		}
	}
	m.settles.addAll(along)
}
