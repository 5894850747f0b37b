package kvqueue

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ambit-go/ambit/async"
)

// reapTurn is how long a member leaves what a session had claimed to each member that is older:
// the oldest gives it back at once, and the others find nothing left to do. If all did it their
// transactions would spoil each other.
const reapTurn = 50 * time.Millisecond

// turn is when a member is to reap, by how many older ones there are. Those that are far behind
// come at random.
func (m *member) turn() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	older := m.olderLocked(m.members[m.id])
	if older > 10 {
		return 10*reapTurn + rand.N(reapTurn*time.Duration(older))
	}
	return reapTurn * time.Duration(older)
}

// gone takes in that a session has ended.
func (m *member) gone(ctx context.Context, id int64) {
	if id == m.id {
		m.end("the store has ended the session", nil)
		return
	}
	async.Go(ctx, func(ctx context.Context) error {
		pause := async.Jitter(0.5, async.Backoff(50*time.Millisecond, time.Second))
		for wait, try := m.turn(), 1; ; try++ {
			if wait > 0 && async.Sleep(ctx, wait) != nil {
				return nil
			}
			done, more, err := m.q.reap(ctx, m.session, id)
			switch {
			case err == nil && !more || ctx.Err() != nil:
				return nil
			case done:
				wait, try = 0, 0
			default: // another does it, or the store fails
				wait = m.turn() + pause(try)
			}
		}
	}, async.Name("kvqueue: give back what a session had claimed"))
}

// leave deletes what stays of a session until its items were given back, if it has none: it has
// ended, so nobody gives it any more. Otherwise the next member sees to it.
func (q *Queue) leave(ctx context.Context, l *session) {
	q.mu.Lock()
	claimed := l.claimed
	q.mu.Unlock()
	if !claimed {
		return
	}
	claims := q.lay.claims(l.id)
	guards := []Guard{{Key: q.lay.session("l", l.id), Is: Absent}, {Key: claims, End: after(claims), Is: Absent}}
	_, _ = q.kv.Commit(ctx, guards, []Write{{Key: q.lay.session("s", l.id), Delete: true}})
}

// reap gives back some of what a session that has ended had claimed, and reports whether it
// has, and whether there may be more.
func (q *Queue) reap(ctx context.Context, l *session, id int64) (done, more bool, err error) {
	claims := q.lay.claims(id)
	s, err := q.read(ctx, Range{Begin: claims, End: after(claims), Limit: q.maxItems}, Range{Begin: q.lay.session("s", id), KeysOnly: true})
	if err != nil {
		return false, true, err
	}
	t := transaction{q: q, guards: []Guard{{Key: q.lay.session("l", id), Is: Absent}}}
	if len(s.of[0].Pairs) == 0 {
		if len(s.of[1].Pairs) == 0 { // somebody has seen to it, or the session itself
			return false, false, nil
		}
		t.writes = append(t.writes, Write{Key: q.lay.session("s", id), Delete: true})
		_, err := q.kv.Commit(ctx, t.guards, t.writes)
		return false, errors.Is(err, ErrConflict), ignore(err)
	}
	const why = "the process that had it went away"
	most := uint64(q.Policy().MaxCrashes)
	lowest, n, dead, weight := uint64(0), 0, 0, 0
	for _, p := range s.of[0].Pairs {
		_, c, err := q.lay.claimOf(p, false)
		if err != nil { // Audit names it
			continue
		}
		if weight += c.rec.weight(); weight > q.maxItems { // the next transaction does it
			break
		}
		t.claimed(id, c.key, c.rev, c.rec.group)
		if c.rec.crashes++; most > 0 && c.rec.crashes >= most {
			t.buried(c.key, c.rec, why)
			dead++
			continue
		}
		n++
		t.back(c.key, c.rec)
		if h := c.key.hint(); c.rec.group == "" && (lowest == 0 || h < lowest) {
			lowest = h
		}
	}
	if n+dead == 0 { // nobody of this package has written those
		return false, false, nil
	}
	if lowest > 0 {
		t.lower(s.head, lowest)
		t.writes = append(t.writes, l.ring())
	}
	if _, err := q.kv.Commit(ctx, t.guards, t.writes); err != nil {
		return false, true, ignore(err)
	}
	if n > 0 {
		q.tell(Report{Kind: Reaped, Items: n})
	}
	if dead > 0 {
		q.tell(Report{Kind: Died, Items: dead, Why: why})
	}
	return true, true, nil
}

// ignore is nil for what another's transaction brings about, and for an answer that was
// lost: the next look shows what is left. It is not for that of a full store, which goes on
// to refuse, though it may have done this transaction.
func ignore(err error) error {
	if errors.Is(err, ErrNoSpace) {
		return err
	}
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrUnknown) {
		return nil
	}
	return err
}
