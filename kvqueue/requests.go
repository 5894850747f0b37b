package kvqueue

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"
)

// This file is staging: members whose direct claims keep each other from getting on, or that
// find nothing, put down requests. The member with the oldest request serves all of them in
// one transaction, and the others wait for that.

// slow is how long the oldest request stands, and the first item is ready, before the member with
// the second oldest serves them; the third waits for twice as long, and so on. The guards keep
// that safe, and that they come one after another keeps them from spoiling each other's
// transactions. On a store that takes long for a transaction it is as long as two of these.
const slow = 50 * time.Millisecond

// mostRequests is how many requests are served in one transaction at most.
const mostRequests = 42

// throughRequest makes sure that a request stands, and serves the requests if that is ours to do.
func (m *member) throughRequest(ctx context.Context, want int) (wait time.Duration, err error) {
	m.mu.Lock()
	mine, oldest, ours := m.mine, "", false
	if len(m.requests) > 0 {
		oldest, ours = m.requests[0].key, m.requests[0].session == m.id
	}
	if mine == "" {
		mine = m.strayLocked()
	}
	m.mu.Unlock()
	switch {
	case mine == "":
		s, err := m.q.read(ctx)
		if err != nil {
			return 0, err
		}
		return m.ask(ctx, s, want)
	case ours:
		return m.serve(ctx)
	case m.lapsed():
		return 0, nil
	case oldest == "": // ours was served: the items are on their way
		return time.Second, nil
	}
	if oldest != m.first {
		m.first, m.item, m.since = oldest, Key{}, time.Now()
	}
	if left := m.patience() - time.Since(m.since); left > 0 {
		return left, nil
	}
	return m.serve(ctx)
}

// patience is for how long a request that is older than ours must have stood.
func (m *member) patience() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := slices.IndexFunc(m.requests, func(r standing) bool { return r.session == m.id })
	return max(slow, 2*m.gathering.took) * time.Duration(max(before, 1))
}

// overdue reports whether the member with the oldest request has left the first item alone for
// so long that we serve it. Otherwise its time begins when we have seen both for the first time.
func (m *member) overdue(oldest string, item Key) bool {
	if m.first != oldest || m.item != item {
		m.first, m.item, m.since = oldest, item, time.Now()
		return false
	}
	return time.Since(m.since) >= m.patience()
}

// lapsed forgets our request when it does not stand any more and nothing has come of it for
// long. The outcome that comes later goes to those who wait then, or back.
func (m *member) lapsed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mine == "" {
		return false
	}
	if _, stands := m.place(m.mine); stands {
		m.missing = time.Time{}
		return false
	}
	switch {
	case m.missing.IsZero():
		m.missing = time.Now()
		return false
	case time.Since(m.missing) < 2*time.Second:
		return false
	}
	m.mine, m.missing = "", time.Time{}
	return true
}

// ask puts down a request. It is as old as the revision of s.
func (m *member) ask(ctx context.Context, s *snapshot, want int) (wait time.Duration, err error) {
	key := binary.BigEndian.AppendUint64(m.q.lay.from("r", s.now()), random())
	value := binary.AppendUvarint(binary.BigEndian.AppendUint64(nil, uint64(m.id)), uint64(want))
	m.mu.Lock()
	m.mine, m.missing = string(key), time.Time{} // the watch may show that it was served before we have the answer
	m.mu.Unlock()
	t := transaction{q: m.q, writes: []Write{{Key: key, Value: value, Session: m.s}}} // refused if the session has ended
	along := m.addCarried(&t)
	rev, err := m.q.kv.Commit(ctx, t.guards, t.writes)
	m.answerCarried(along, err)
	switch {
	case err == nil:
		m.mu.Lock()
		served := m.mine != string(key) // before we had the answer
		m.mu.Unlock()
		if !served {
			m.stands(standing{string(key), rev, m.id, want})
		}
		return 0, nil
	case errors.Is(err, ErrUnknown): // if it stands the watch shows it
		if look := m.forgetIfGone(ctx, key); look != nil {
			return 0, look
		}
		return slow, ignore(err)
	}
	m.mu.Lock()
	if m.mine == string(key) {
		m.mine = ""
	}
	m.mu.Unlock()
	switch {
	case !errors.Is(err, ErrConflict):
		return 0, err
	case len(along) > 0: // it may be that of a claim that is lost: ask again without it
		return 0, nil
	}
	m.end("the store has ended the session", nil)
	return 0, err
}

// forgetIfGone looks what has become of our request, and forgets it if it does not stand. If
// it comes to stand later, the watch shows it.
func (m *member) forgetIfGone(ctx context.Context, key []byte) error {
	results, _, err := m.q.kv.Read(ctx, Range{Begin: key})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(results[0].Pairs) == 0 && m.mine == string(key) {
		m.mine = ""
	}
	return nil
}

// stands notes a request that stands.
func (m *member) stands(r standing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, there := m.place(r.key); there {
		m.requests[i] = r
	} else {
		m.requests = append(m.requests, r)
	}
	slices.SortFunc(m.requests, older)
}

// older orders requests: the oldest is the one that the store has had for longest. So one that
// comes later never stands before another, and as long as a request stands its member knows
// whether it is the oldest.
func older(a, b standing) int {
	return cmp.Or(cmp.Compare(a.rev, b.rev), strings.Compare(a.key, b.key))
}

// fell notes that a request does not stand any more.
func (m *member) fell(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, there := m.place(key); there {
		m.requests = slices.Delete(m.requests, i, i+1)
	}
}

func (m *member) place(key string) (int, bool) {
	i := slices.IndexFunc(m.requests, func(r standing) bool { return r.key == key })
	return i, i >= 0
}

// withdraw takes our request back. If it was served meanwhile the items are on their way.
func (m *member) withdraw(ctx context.Context) (wait time.Duration, err error) {
	m.mu.Lock()
	key := m.mine
	if key == "" {
		key = m.strayLocked()
	}
	m.mu.Unlock()
	guard := Guard{Key: []byte(key), Is: Present}
	_, err = m.q.kv.Commit(ctx, []Guard{guard}, []Write{{Key: []byte(key), Delete: true}})
	switch {
	case errors.Is(err, ErrConflict): // it was served, or is on its way
		m.fell(key)
		return time.Second, m.forgetIfGone(ctx, []byte(key))
	case err != nil:
		return 0, err
	}
	m.fell(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mine == key {
		m.mine = ""
	}
	return 0, nil
}

// serve gives the first items to the oldest requests, in one transaction.
func (m *member) serve(ctx context.Context) (wait time.Duration, err error) {
	waiters := m.q.listed()
	requests := m.oldest()
	ranges := make([]Range, len(requests), len(requests)+1)
	for i, r := range requests {
		ranges[i] = Range{Begin: []byte(r.key), KeysOnly: true}
	}
	stand := m.standingRange()
	look, err := m.q.front(ctx, m.q.maxItems, append(ranges, Range{Begin: stand.Key, End: stand.End, Limit: mostRequests})...)
	if err != nil {
		return 0, err
	}
	requests = m.thatStand(requests, look)
	switch {
	case len(look.front) == 0:
		m.q.nothing(waiters)
		m.first = "" // from the next bell on the oldest has some time again
		if m.q.wanted() == 0 {
			return 0, nil // and withdraw our request: nobody waits for what it brings
		}
		return longWait, nil
	case len(requests) > 0 && requests[0].session != m.id && !m.overdue(requests[0].key, look.front[0].key):
		return slow, nil
	}
	m.first = ""
	t, shares := m.deal(requests, look)
	var mine []ready
	for i, s := range shares {
		if requests[i].session == m.id {
			mine = append(mine, look.front[s.begin:s.end]...)
		}
	}
	if len(shares) == 0 { // of those that we know of none stands: the watch shows the others
		return slow, nil
	}
	ok, err := m.commit(ctx, t, mine, nil)
	switch {
	case !ok && err == nil:
		m.crowded = time.Now()
		m.q.counts.conflicts.Add(1)
		return time.Millisecond, nil
	case ok:
		m.served(requests[:len(shares)])
	}
	return 0, err
}

// oldest returns the requests that one transaction can serve.
func (m *member) oldest() []standing {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests[:min(len(m.requests), mostRequests)])
}

// thatStand returns the requests that stand at the revision of a look: those of the ones that
// we know, and younger ones that the watch has not shown yet. Those that do not stand any more
// are forgotten.
func (m *member) thatStand(requests []standing, look *look) (left []standing) {
	known := map[string]bool{}
	for i, r := range requests {
		known[r.key] = true
		if pairs := look.of[i].Pairs; len(pairs) > 0 {
			r.rev = pairs[0].Rev
			left = append(left, r)
		} else {
			m.fell(r.key)
		}
	}
	for _, p := range look.of[len(requests)].Pairs {
		if r, err := decodeStanding(p); err == nil && !known[r.key] {
			left = append(left, r)
		}
	}
	slices.SortFunc(left, older)
	return left[:min(len(left), mostRequests)]
}

// deal makes the transaction that serves requests, and says what each of them gets. It guards
// no session: a request vanishes at one revision with its session, ours too, so the guard of the
// request is that of the session.
func (m *member) deal(requests []standing, look *look) (*transaction, []share) {
	wants := make([]int, len(requests))
	ours := false
	for i, r := range requests {
		if wants[i] = max(r.want, 1); r.session == m.id && !ours {
			wants[i], ours = max(m.q.wanted(), 1), true
		}
	}
	shares := deal(wants, look.front, m.q.maxItem, m.q.fits)
	t := &transaction{q: m.q}
	together := map[int64]int{}
	for i, s := range shares {
		together[requests[i].session] += s.end - s.begin
	}
	for i, s := range shares {
		r := requests[i]
		t.guards = append(t.guards, Guard{Key: []byte(r.key), Is: Unchanged, Rev: r.rev})
		t.writes = append(t.writes, Write{Key: []byte(r.key), Delete: true})
		for _, h := range look.front[s.begin:s.end] {
			t.claim(r.session, h, together[r.session])
		}
	}
	return t, shares
}

// served forgets requests that were served.
func (m *member) served(requests []standing) {
	for _, r := range requests {
		m.fell(r.key)
		if r.session == m.id {
			m.mu.Lock()
			m.mine = ""
			m.mu.Unlock()
		}
	}
}
