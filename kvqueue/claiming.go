package kvqueue

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file does the transactions that claim items, and hands over what they have claimed.

// commit claims items, of which mine are for this member, and hands those over, and does the
// acknowledgements that are along. It reports false if others were faster.
func (m *member) commit(ctx context.Context, t *transaction, mine []ready, along []*request[settlement]) (ok bool, err error) {
	m.try(mine)
	payloads := async.Execute(ctx, func(ctx context.Context) ([][]byte, error) { return m.payloads(ctx, mine) })
	begin := time.Now()
	rev, err := m.q.kv.Commit(ctx, t.guards, t.writes)
	m.gathering.took = time.Since(begin)
	m.answerCarried(along, err)
	if err != nil {
		payloads.Cancel(nil)
		return m.release(mine, err)
	}
	m.hold(mine, rev)
	values, _ := payloads.Wait(ctx)
	return true, m.handOver(ctx, mine, values, rev)
}

// handOver gives what was claimed to those who wait. values are the payloads if they were read.
func (m *member) handOver(ctx context.Context, mine []ready, values [][]byte, rev Rev) (err error) {
	if len(values) < len(mine) {
		if values, err = m.payloads(ctx, mine); err != nil {
			m.adopt(rev, mine)
			return err
		}
	}
	m.deliver(m.items(mine, values, rev))
	return nil
}

// release notes that a claim came to nothing, as far as is known: if it was done all the
// same, the watch shows it, and it is handed over as if another had claimed it for us.
func (m *member) release(mine []ready, err error) (bool, error) {
	m.mu.Lock()
	for _, r := range mine {
		h := m.held[r.key]
		if h.busy = false; h.rev <= h.ended {
			delete(m.held, r.key)
		}
		if h.seen != nil {
			m.arriveLocked(*h.seen)
		}
	}
	m.mu.Unlock()
	return false, ignore(err)
}

// try notes that a transaction is on its way that claims items.
func (m *member) try(claims []ready) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range claims {
		h := &holding{busy: true}
		if before := m.held[r.key]; before != nil {
			h.rev = before.rev
		}
		m.held[r.key] = h
	}
}

// hold notes that items were claimed.
func (m *member) hold(claims []ready, rev Rev) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range claims {
		m.held[r.key] = &holding{rev: rev}
	}
}

// payloads reads the payloads of items.
func (m *member) payloads(ctx context.Context, of []ready) ([][]byte, error) {
	values := make([][]byte, 0, len(of))
	for len(values) < len(of) {
		var ranges []Range
		for _, r := range of[len(values):min(len(of), len(values)+m.q.maxItems)] {
			ranges = append(ranges, Range{Begin: m.q.lay.data(r.key)})
		}
		results, _, err := m.q.kv.Read(ctx, ranges...)
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
		items[i] = Item{Key: r.key, Value: values[i], Attempt: int(r.rec.attempts()) + 1, Fence: fence,
			claim: &claim{session: m.session, key: r.key, rec: r.rec, fence: fence}}
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
