package kvqueue

import (
	"context"
	"slices"
	"time"
)

// This file gives back what a handle that is closed has claimed for callers that have gone. If the
// session ended before, the others would take it for the claims of a process that has crashed,
// and an attempt would be spent that nobody has made.

// closingTime is how long the store has for that.
const closingTime = time.Second

// giveAllBack has the member of a session claim nothing more, what was claimed for nobody go back, and what
// waits for its [RetryDelay]. It returns when that is done, or its time is over.
func (q *Queue) giveAllBack(ctx context.Context, l *session) {
	ctx, cancel := context.WithTimeout(ctx, closingTime)
	defer cancel()
	q.mu.Lock()
	m := l.member // no other begins in a handle that is closed
	q.mu.Unlock()
	if m != nil {
		m.closing.Store(true)
		m.wake()
		select {
		case <-m.over:
		case <-ctx.Done():
		}
	}
	_ = q.returns.Wait(ctx)
	l.settleDelayed(ctx)
}

// giveUp gives back what was claimed for the member and not handed over, after the member has
// claimed for the last time. Its requests go first: then nobody claims for it any more.
func (m *member) giveUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closingTime)
	defer cancel()
	var writes []Write
	for _, key := range m.standing() {
		writes = append(writes, Write{Key: []byte(key), Delete: true})
	}
	if len(writes) > 0 {
		if _, err := m.q.kv.Commit(ctx, nil, writes); err != nil {
			return
		}
	}
	claims := m.q.lay.claims(m.id)
	results, _, err := m.q.kv.Read(ctx, Range{Begin: claims, End: after(claims)})
	if err != nil {
		return
	}
	for _, p := range results[0].Pairs {
		if r, err := m.q.lay.claimIn(m.id, p); err == nil && !m.handedOver(r) {
			m.q.giveBack(m.items([]ready{r}, make([][]byte, 1), r.rev))
		}
	}
}

// standing returns the requests of this member that stand, or may.
func (m *member) standing() (keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.requests {
		if r.session == m.id {
			keys = append(keys, r.key)
		}
	}
	if m.mine != "" && !slices.Contains(keys, m.mine) {
		keys = append(keys, m.mine)
	}
	return keys
}

// handedOver reports whether somebody here has a claim.
func (m *member) handedOver(r ready) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held[r.key]
	return h != nil && h.rev >= r.rev && m.arrived[r.rev] == nil
}
