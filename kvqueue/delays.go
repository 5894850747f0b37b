package kvqueue

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file keeps settlements back until their time.

// add settles a claim after a while. If the session has ended by then the item goes back, or
// has gone, by that: nothing waits any more.
func (l *session) add(s settlement, after time.Duration) {
	s.now = true
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		l.loseAll([]*claim{s.claim}, l.err())
		return
	}
	defer l.mu.Unlock()
	var t *time.Timer // the function below comes to it when mu is free
	t = time.AfterFunc(after, func() {
		l.mu.Lock()
		_, waits := l.delayed[t]
		delete(l.delayed, t)
		l.mu.Unlock()
		if waits {
			_ = l.settles.add(newRequest(s))
		}
	})
	l.delayed[t] = s
}

// settleDelayed settles now what waits for its time: the handle is about to be closed, and the
// others would take the end of the session for a crash.
func (l *session) settleDelayed(ctx context.Context) {
	var requests []*request[settlement]
	l.mu.Lock()
	for t, s := range l.delayed {
		t.Stop()
		requests = append(requests, newRequest(s))
	}
	clear(l.delayed)
	l.mu.Unlock()
	l.settles.addAll(requests)
	_, _ = l.settles.await(ctx, requests) // or the session ends, and they go back then
}

// later takes those out of a batch whose next run is to wait: they stay claimed meanwhile,
// and their callers are answered.
func (l *session) later(batch []*request[settlement]) (now []*request[settlement]) {
	var waits []*claim
	for _, r := range batch {
		d := r.of.delay()
		if d <= 0 {
			now = append(now, r)
			continue
		}
		s := r.of
		s.last = true
		s.claim.delayed.Store(true)
		if s.claim.rec.group != "" && !s.claim.late && d >= noted {
			waits = append(waits, s.claim)
		}
		l.add(s, d)
		r.answer(nil)
	}
	l.noteWaits(waits)
	return now
}

// noted is the shortest delay of which noteWaits says that a group waits: shorter ones are over before it pays.
const noted = 100 * time.Millisecond

// noteWaits says of the groups of some claims that they wait, behind everybody's back. Looks have to pass over those of which
// that is not said, and no more.
func (l *session) noteWaits(claims []*claim) {
	if len(claims) == 0 {
		return
	}
	t := transaction{q: l.q, guards: []Guard{l.lives()}}
	for _, c := range claims {
		t.guards = append(t.guards, Guard{Key: l.q.lay.claim(l.id, c.key), Is: Unchanged, Rev: c.fence})
		t.writes = append(t.writes,
			Write{Key: l.q.lay.held(c.rec.group), Value: []byte(waitsForDelay)},
			Write{Key: l.q.lay.marker(c.rec.group), Delete: true})
	}
	_ = l.q.group.Go(func(ctx context.Context) error {
		_, _ = l.q.kv.Commit(ctx, t.guards, t.writes)
		return nil
	}, async.Name("kvqueue: say which groups of "+l.q.name+" wait"))
}

// delay is how long the next run of an item waits after this end.
func (s settlement) delay() time.Duration {
	if s.verdict != failed || s.now || s.dies() {
		return 0
	}
	return s.claim.policy.delay(s.claim.rec.failures + 1)
}

// dies reports whether an item is dead after this end.
func (s settlement) dies() bool {
	return s.verdict == failed && s.claim.rec.failures+1 >= uint64(s.claim.policy.MaxAttempts)
}
