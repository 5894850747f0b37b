package kvqueue

import (
	"context"
	"slices"
)

// This file hands over what others have claimed for a member: all items of a transaction or none.

// arrivals returns the items of the transactions with which others have served our request
// and which have arrived as a whole.
func (m *member) arrivals(ctx context.Context) (items []Item, err error) {
	for {
		rev, claims := m.arrival()
		if claims == nil {
			return items, nil
		}
		values, err := m.payloads(ctx, claims)
		if err != nil {
			m.adopt(rev, claims)
			return items, err
		}
		items = append(items, m.items(claims, values, rev)...)
	}
}

func (m *member) arrival() (Rev, []ready) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for rev, claims := range m.arrived {
		if len(claims) < claims[0].together {
			continue
		}
		delete(m.arrived, rev)
		slices.SortFunc(claims, func(a, b ready) int { return slices.Compare(a.key[:], b.key[:]) })
		for _, r := range claims {
			m.held[r.key] = &holding{rev: rev}
		}
		m.mine = ""
		return rev, claims
	}
	return 0, nil
}

// adopt has claims handed over by the next step. They stay in held: the watch may be about
// to show them.
func (m *member) adopt(rev Rev, claims []ready) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range claims {
		claims[i].rev, claims[i].together = rev, len(claims)
	}
	m.arrived[rev] = claims
}
