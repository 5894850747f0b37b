package kvqueue

import (
	"context"
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
// claimed for the last time. Its places go first: then nobody claims for it any more.
func (m *member) giveUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closingTime)
	defer cancel()
	if _, err := m.q.kv.Commit(ctx, nil, []Write{{Key: m.q.lay.session("r", m.id), Delete: true}}); err != nil {
		return
	}
	claims := m.q.lay.claims(m.id)
	results, at, err := m.q.kv.Read(ctx, Range{Begin: claims, End: after(claims)})
	if err != nil {
		return
	}
	m.listClaims(results[0], at)
	for rev, claims := range m.leftovers() {
		m.q.giveBack(m.items(claims, make([][]byte, len(claims)), rev))
	}
}

// leftovers takes what was not handed over.
func (m *member) leftovers() map[Rev][]ready {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := m.arrived
	m.arrived = map[Rev][]ready{}
	return left
}
