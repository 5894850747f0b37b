package kvqueue

import (
	"context"
	"maps"
	"slices"
	"time"
)

// This file hands over what was claimed for this session, by itself or by another: all items of a
// transaction or none.

// handOver gives the claims that are there to those who wait, and reports whether there were any.
func (m *member) handOver(ctx context.Context) (done bool, err error) {
	var items []Item
	for err == nil {
		rev, claims := m.arrival()
		if claims == nil {
			break
		}
		var values [][]byte
		if values, err = m.read(ctx, claims); err != nil {
			m.mu.Lock()
			m.arrived[rev] = claims // for the next step
			m.mu.Unlock()
			break
		}
		items = append(items, m.items(claims, values, rev)...)
	}
	if len(items) > 0 {
		if items[0].Group != "" { // what is first of groups stays that until its turn, though others assign
			m.since = time.Time{}
		}
		served, left := m.q.hand(items)
		m.gathering.came = served
		m.q.giveBack(left) // nobody wants it any more
	}
	return len(items) > 0, err
}

// arrival takes the claims of the first transaction that are there as a whole.
func (m *member) arrival() (Rev, []ready) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, rev := range slices.Sorted(maps.Keys(m.arrived)) {
		if claims := m.arrived[rev]; len(claims) >= claims[0].together {
			delete(m.arrived, rev)
			slices.SortFunc(claims, func(a, b ready) int { return slices.Compare(a.key[:], b.key[:]) })
			return rev, claims
		}
	}
	return 0, nil
}

// keepPayloads keeps what was read of items while they were being claimed.
func (m *member) keepPayloads(of []ready, values [][]byte) {
	clear(m.values)
	for i, value := range values {
		m.values[of[i].key] = value
	}
}

// read returns the payloads of items, those that are kept or all anew.
func (m *member) read(ctx context.Context, of []ready) (values [][]byte, err error) {
	for _, r := range of {
		value, there := m.values[r.key]
		if !there {
			return m.q.payloads(ctx, of)
		}
		values = append(values, value)
	}
	return values, nil
}

// payloads reads the payloads of items.
func (q *Queue) payloads(ctx context.Context, of []ready) ([][]byte, error) {
	values := make([][]byte, 0, len(of))
	for len(values) < len(of) {
		var ranges []Range
		for _, r := range of[len(values):min(len(of), len(values)+q.maxItems)] {
			ranges = append(ranges, Range{Begin: q.lay.data(r.key)})
		}
		results, _, err := q.glance(ctx, ranges...)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			var value []byte
			if len(r.Pairs) > 0 {
				value = r.Pairs[0].Value
			}
			values = append(values, value)
		}
	}
	return values, nil
}

func (m *member) items(of []ready, values [][]byte, fence Rev) []Item {
	items := make([]Item, len(of))
	for i, r := range of {
		items[i] = Item{Key: r.key, Value: values[i], Group: unescape(r.rec.group), Attempt: int(r.rec.attempts()) + 1, Fence: fence,
			Added: r.rec.addedAt(),
			claim: &claim{session: m.session, key: r.key, rec: r.rec, fence: fence, policy: m.q.Policy()}}
	}
	late := m.session.held.Add(int64(len(items))) < 0
	m.q.tell(Report{Kind: Claimed, Items: len(items)})
	if late { // the session has ended, and has counted those that it knew of
		for i := range items {
			items[i].claim.counted = true // nobody else knows the claim yet
		}
		m.tellLost(len(items), whyLost(m.session.err()))
	}
	return items
}
