package kvqueue

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// This file is staging: members whose direct claims keep each other from getting on, or that
// find nothing, put down requests. The member with the oldest request serves all of them in
// one transaction, and the others wait for that.

// slow is how long the others wait for the member with the oldest request, while there may
// be items, before any of them serves the requests. The guards keep that safe.
const slow = 50 * time.Millisecond

// mostRequests is how many requests are served in one transaction at most.
const mostRequests = 42

// staged makes sure that a request stands, and serves the requests if that is ours to do.
func (m *member) staged(ctx context.Context, want int) (wait time.Duration, err error) {
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
		m.first, m.since = oldest, time.Now()
	}
	if left := slow - time.Since(m.since); left > 0 {
		return left, nil
	}
	m.since = time.Now().Add(rand.N(slow))
	return m.serve(ctx)
}

// lapsed forgets our request when it does not stand any more and nothing has come of it for
// long. What comes of it later goes to those who wait then, or back.
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
	rev, err := m.q.kv.Commit(ctx, []Guard{m.lives()}, []Write{{Key: key, Value: value, Session: m.s}})
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
	if errors.Is(err, ErrConflict) {
		m.end("the store has ended the session", nil)
	}
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
	i, there := m.place(r.key)
	switch {
	case there:
		m.requests[i] = r
	default:
		m.requests = slices.Insert(m.requests, i, r)
	}
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
	return slices.BinarySearchFunc(m.requests, key, func(r standing, key string) int { return strings.Compare(r.key, key) })
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
	ranges := make([]Range, len(requests))
	for i, r := range requests {
		ranges[i] = Range{Begin: []byte(r.key), KeysOnly: true}
	}
	look, err := m.q.heads(ctx, m.q.maxItems, ranges...)
	if err != nil {
		return 0, err
	}
	requests = m.thatStand(requests, look)
	if len(look.heads) == 0 {
		m.q.nothing(waiters)
		m.first = "" // from the next bell on the oldest has some time again
		if m.q.wanted() == 0 {
			return 0, nil // and withdraw our request: nobody waits for what it brings
		}
		return longWait, nil
	}
	t, shares := m.deal(requests, look)
	var mine []ready
	for i, s := range shares {
		if requests[i].session == m.id {
			mine = append(mine, look.heads[s.begin:s.end]...)
		}
	}
	if len(shares) == 0 { // of those that we know of none stands: the watch shows the others
		return slow, nil
	}
	ok, err := m.commit(ctx, t, mine)
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

// thatStand returns those requests that stand at the revision of a look. The others are
// forgotten.
func (m *member) thatStand(requests []standing, look *look) (left []standing) {
	for i, r := range requests {
		if pairs := look.of[i].Pairs; len(pairs) > 0 {
			r.rev = pairs[0].Rev
			left = append(left, r)
		} else {
			m.fell(r.key)
		}
	}
	return left
}

// deal makes the transaction that serves requests, and says what each of them gets.
func (m *member) deal(requests []standing, look *look) (*transaction, []share) {
	wants := make([]int, len(requests))
	ours := false
	for i, r := range requests {
		if wants[i] = max(r.want, 1); r.session == m.id && !ours {
			wants[i], ours = max(m.q.wanted(), 1), true
		}
	}
	shares := deal(wants, look.heads, m.q.maxItem, m.q.fits)
	t := &transaction{q: m.q, guards: []Guard{m.lives()}}
	guarded := map[int64]bool{m.id: true}
	together := map[int64]int{}
	for i, s := range shares {
		together[requests[i].session] += s.end - s.begin
	}
	for i, s := range shares {
		r := requests[i]
		t.guards = append(t.guards, Guard{Key: []byte(r.key), Is: Unchanged, Rev: r.rev})
		t.writes = append(t.writes, Write{Key: []byte(r.key), Delete: true})
		if !guarded[r.session] {
			guarded[r.session] = true
			t.guards = append(t.guards, Guard{Key: m.q.lay.session("l", r.session), Is: Present})
		}
		for _, h := range look.heads[s.begin:s.end] {
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
