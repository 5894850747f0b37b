package kvqueue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file assigns items to sessions. One member does so for all, that which has been one for
// longest, so that no transaction spoils another: it knows how many claims each session wants to have, by
// the key r of the session, and how many it has, by its keys w. So an acknowledgement asks for the next item.

// A taker is a session that has free places.
type taker struct {
	session int64
	want    int
}

// takers returns the sessions that have free places: those first that have waited for longest since they
// had none, or since something was assigned to them.
func (m *member) takers() []taker {
	wanted, _ := m.q.wanted()
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []taker
	for id := range m.members {
		want := m.places[id].places - len(m.claims[id])
		if id == m.id {
			want = wanted - m.arrivedLocked()
		}
		if want <= 0 {
			delete(m.waits, id)
			continue
		}
		if m.waits[id].IsZero() {
			m.waits[id] = time.Now()
		}
		all = append(all, taker{id, want})
	}
	slices.SortFunc(all, func(a, b taker) int {
		return cmp.Or(m.waits[a.session].Compare(m.waits[b.session]), cmp.Compare(m.members[a.session], m.members[b.session]))
	})
	return all
}

// self is this session as the only taker.
func (m *member) self() []taker {
	wanted, _ := m.q.wanted()
	m.mu.Lock()
	defer m.mu.Unlock()
	if want := wanted - m.arrivedLocked(); want > 0 {
		return []taker{{m.id, want}}
	}
	return nil
}

// still returns the takers of before, with what they want now if that is less.
func still(before, now []taker) (all []taker) {
	wants := map[int64]int{}
	for _, t := range now {
		wants[t.session] = t.want
	}
	for _, t := range before {
		if t.want = min(t.want, wants[t.session]); t.want > 0 {
			all = append(all, t)
		}
	}
	return all
}

// assign gives the first items to sessions with free places, in one transaction. Who comes after it has
// looked for items waits for the next: an item that has come back meanwhile may be before these. Who
// has gone meanwhile is left out.
func (m *member) assign(ctx context.Context, takers func() []taker) (wait time.Duration, err error) {
	before, total := takers(), 0
	for _, t := range before {
		total += t.want
	}
	if total == 0 {
		return longWait, nil
	}
	waiters := m.q.listed()
	look, err := m.look(ctx, min(total, m.q.maxItems))
	switch {
	case err != nil:
		return 0, err
	case len(look.front) == 0 && m.arrives(): // it is handed over next
		return 0, nil
	case len(look.front) == 0: // the bell rings when there may be one
		m.q.nothing(waiters)
		return longWait, nil
	}
	t, given := m.deal(still(before, takers()), look.front)
	if len(given) == 0 {
		return 0, nil
	}
	told := m.withdraw(&t)
	along := m.addCarried(&t)
	payloads := async.Execute(ctx, func(ctx context.Context) ([][]byte, error) { return m.q.payloads(ctx, given[m.id]) })
	begin := time.Now()
	rev, err := m.q.kv.Commit(ctx, t.guards, t.writes)
	m.gathering.took = time.Since(begin)
	m.unsureAfter(err)
	m.answerCarried(along, err)
	told(rev, err)
	switch {
	case err == nil:
		m.given(rev, given)
		values, _ := payloads.Wait(ctx)
		m.keepPayloads(given[m.id], values)
		_, err = m.handOver(ctx)
		return 0, err
	case errors.Is(err, ErrConflict):
		m.q.counts.conflicts.Add(1)
		err = m.recheck(ctx, given)
	}
	payloads.Cancel(nil)
	return time.Millisecond, ignore(err)
}

// look looks for the first items. If others assign to this session, or the answer to its last transaction was lost,
// there may be claims that the watch has not shown yet: they are looked for as well, since they take places.
func (m *member) look(ctx context.Context, most int) (*look, error) {
	if _, assigns := m.stand(); !m.unsure && (assigns || m.q.update != nil) {
		return m.q.front(ctx, most)
	}
	claims := m.watched()
	l, err := m.q.front(ctx, most, Range{Begin: claims, End: after(claims)})
	if err != nil {
		return nil, err
	}
	m.unsure = m.unsure && len(l.front) > 0 // a transaction that may be done late claims what is ready
	of := l.of[0]
	if len(l.front) == 0 { // what was ready may have been claimed for this session since: heads of groups are read later
		results, _, err := m.q.kv.Read(ctx, Range{Begin: claims, End: after(claims)})
		if err != nil {
			return nil, err
		}
		of = results[0]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range of.Pairs {
		if id, r, err := m.q.lay.claimOf(p, false); err == nil {
			m.newLocked(id, r)
		}
	}
	return l, nil
}

// unsureAfter notes whether there may be claims by a transaction whose answer was lost: also after a conflict, with
// which it may have spoilt the next.
func (m *member) unsureAfter(err error) {
	m.unsure = err != nil && (m.unsure || errors.Is(err, ErrUnknown))
}

// withdraw has the store know of no place of a session that claims for itself, in the same transaction: the one that
// assigns may not see the claims for a while, and cannot give it others meanwhile. The function that it returns
// is called with the outcome.
func (m *member) withdraw(t *transaction) (told func(Rev, error)) {
	if _, assigns := m.stand(); !assigns {
		if w, told := m.change(demand{}, false); told != nil {
			t.writes = append(t.writes, w)
			return told
		}
	}
	return func(Rev, error) {}
}

// deal makes the transaction that gives the first items to takers, and says what each of them gets.
func (m *member) deal(takers []taker, first []ready) (t transaction, given map[int64][]ready) {
	t, given = transaction{q: m.q, guards: []Guard{m.lives()}}, map[int64][]ready{}
	wants := make([]int, len(takers))
	for i, to := range takers {
		wants[i] = to.want
	}
	for i, s := range deal(wants, first, m.q.maxItem, m.fitsBeside()) {
		id, items := takers[i].session, first[s.begin:s.end]
		if id != m.id { // it vanishes with the session, or when the session wants nothing any more
			t.guards = append(t.guards, Guard{Key: m.q.lay.session("r", id), Is: Present})
		}
		for _, r := range items {
			t.claim(id, r, len(items))
		}
		given[id] = items
	}
	return t, given
}

// recheck looks which of the sessions that were to be given items want nothing any more: as long as the
// watch does not show it, a transaction for them would be refused again and again.
func (m *member) recheck(ctx context.Context, given map[int64][]ready) error {
	var ids []int64
	var ranges []Range
	for id := range given {
		if id != m.id {
			ids, ranges = append(ids, id), append(ranges, Range{Begin: m.q.lay.session("r", id)})
		}
	}
	if len(ids) == 0 {
		return nil
	}
	results, _, err := m.q.kv.Read(ctx, ranges...)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, id := range ids {
		if len(results[i].Pairs) == 0 {
			delete(m.places, id)
		}
	}
	return nil
}

// given notes what was claimed at a revision, unless it was shown before.
func (m *member) given(rev Rev, items map[int64][]ready) {
	m.q.turns.taken(items)
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, of := range items {
		m.waits[id] = time.Now()
		if d, there := m.places[id]; there && d.rev < rev {
			m.places[id] = d.given(len(of))
		}
		for _, r := range of {
			m.newLocked(id, ready{key: r.key, rev: rev, rec: r.rec, together: len(of)})
		}
	}
}

// newLocked notes a claim of which this member did not hear by the watch: unless that has shown what came
// later, and perhaps the end of the claim. It may have shown a part of the transaction.
func (m *member) newLocked(id int64, r ready) {
	if r.rev >= m.shown {
		m.claimedLocked(id, r)
	}
}

// claimedLocked notes a claim, once. Those of this session are handed over.
func (m *member) claimedLocked(id int64, r ready) {
	if m.claims[id] == nil {
		m.claims[id] = map[Key]Rev{}
	}
	if m.claims[id][r.key] >= r.rev {
		return
	}
	m.claims[id][r.key] = r.rev
	if id == m.id {
		m.arrived[r.rev] = append(m.arrived[r.rev], r)
		if m.told.given(r.together) != m.told {
			m.fewer = r.rev
		}
	}
}

// endedLocked notes the end of a claim. It says nothing of a later claim.
func (m *member) endedLocked(id int64, k Key, rev Rev) {
	if m.claims[id][k] < rev {
		if delete(m.claims[id], k); len(m.claims[id]) == 0 {
			delete(m.claims, id)
		}
	}
}

func (m *member) arrivedLocked() (n int) {
	for _, claims := range m.arrived {
		n += claims[0].together // those that are not there yet come
	}
	return n
}
