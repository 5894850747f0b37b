package kvqueue

import (
	"context"
	"slices"
	"time"
)

// This file is of the members that do not assign: they wait for what they are given.

// slow is for how long the first item is left alone before another member than that which assigns
// claims it for itself: of those that wait the oldest after this time, the next after twice as long. The
// guards keep that safe, and that they come one after another keeps them from spoiling each other's
// transactions. On a store that takes long for a transaction it is as long as two of these.
const slow = 50 * time.Millisecond

// await waits for items that another member assigns, and claims some for itself if it does not.
func (m *member) await(ctx context.Context) (wait time.Duration, err error) {
	waiters := m.q.listed()
	tries := slices.ContainsFunc(waiters, func(w *waiter) bool { return w.try })
	if tries { // without items they want no place
		if none, err := m.none(ctx, waiters); none || err != nil {
			return 0, err
		}
	}
	if told, err := m.tell(ctx, m.keeps()); told || err != nil {
		return time.Millisecond, err
	}
	m.mu.Lock()
	took := m.gathering.took
	m.mu.Unlock()
	patience := max(slow, 2*took, 2*time.Duration(m.took.Load())) * time.Duration(1+m.waitBefore())
	switch {
	case len(waiters) == 0:
		m.since = time.Time{}
		return longWait, nil
	case m.since.IsZero():
		m.since = time.Now()
	}
	left := patience - time.Since(m.since)
	if left <= 0 {
		if none, err := m.none(ctx, waiters); none || err != nil {
			return longWait, err
		}
		left = patience - time.Since(m.since) // from when its first item was the first
	}
	switch {
	case left <= 0:
		m.since = time.Time{}
		return m.assign(ctx, m.self)
	case tries:
		return min(left, slow), nil
	}
	return left, nil
}

// waitBefore is how many older members have places: when the one that assigns does not, they come first.
func (m *member) waitBefore() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.places {
		if rev, there := m.members[id]; there && rev < m.members[m.id] {
			n++
		}
	}
	return n
}

// none looks whether nothing is ready, and nothing has been assigned to this session that the watch has not shown
// yet, and answers those of waiters that would not wait, if so. Else it notes since when the first item has been that.
func (m *member) none(ctx context.Context, waiters []*waiter) (bool, error) {
	look, err := m.look(ctx, 1)
	switch {
	case err != nil:
		return false, err
	case m.arrives(): // it is handed over next
		m.wake()
		return false, nil
	case len(look.front) == 0:
		m.q.nothing(waiters)
		m.since = time.Time{}
		return true, nil
	case look.front[0].key != m.item:
		m.item, m.since = look.front[0].key, time.Now()
	}
	return false, nil
}

// arrives reports whether there are claims that are to be handed over.
func (m *member) arrives() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.arrivedLocked() > 0
}
