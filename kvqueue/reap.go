package kvqueue

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ambit-go/ambit/async"
)

// reapSpread is the time over which the members begin to give back what a session that has
// ended had claimed: most find nothing left to do.
const reapSpread = 50 * time.Millisecond

// gone takes in that a session has ended.
func (m *member) gone(ctx context.Context, id int64) {
	if id == m.id {
		m.end("the store has ended the session", nil)
		return
	}
	async.Go(ctx, func(ctx context.Context) error {
		pause := async.Jitter(0.5, async.Backoff(50*time.Millisecond, time.Second))
		for try := 1; ; try++ {
			if err := async.Sleep(ctx, rand.N(reapSpread)); err != nil {
				return nil
			}
			if more, err := m.q.reap(ctx, m.life, id); err == nil && !more || ctx.Err() != nil {
				return nil
			} else if err != nil && async.Sleep(ctx, pause(try)) != nil {
				return nil
			}
		}
	}, async.Name("kvqueue: give back what a session had claimed"))
}

// leave deletes what stays of a session until its items were given back, if it has none: it has
// ended, so nobody gives it any more. Otherwise the next member sees to it.
func (q *Queue) leave(ctx context.Context, l *life) {
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

// reap gives back some of what a session that has ended had claimed, and reports whether
// there may be more.
func (q *Queue) reap(ctx context.Context, l *life, id int64) (more bool, err error) {
	claims := q.lay.claims(id)
	s, err := q.read(ctx, Range{Begin: claims, End: after(claims), Limit: q.maxItems}, Range{Begin: q.lay.session("s", id), KeysOnly: true})
	if err != nil {
		return true, err
	}
	t := transaction{q: q, guards: []Guard{{Key: q.lay.session("l", id), Is: Absent}}}
	if len(s.of[0].Pairs) == 0 {
		if len(s.of[1].Pairs) == 0 { // somebody has seen to it, or the session itself
			return false, nil
		}
		t.writes = append(t.writes, Write{Key: q.lay.session("s", id), Delete: true})
		_, err := q.kv.Commit(ctx, t.guards, t.writes)
		return errors.Is(err, ErrConflict), ignore(err)
	}
	const why = "the process that had it went away"
	lowest, n, dead := uint64(0), 0, 0
	for _, p := range s.of[0].Pairs {
		c, err := q.lay.claimIn(id, p)
		if err != nil { // Audit names it
			continue
		}
		t.claimed(id, c.key, c.rev)
		if c.rec.crashes++; q.set.maxCrashes > 0 && c.rec.crashes >= q.set.maxCrashes {
			t.buried(c.key, c.rec, why)
			dead++
			continue
		}
		n++
		t.back(c.key, c.rec)
		if h := c.key.hint(); lowest == 0 || h < lowest {
			lowest = h
		}
	}
	if n+dead == 0 { // nobody of this package has written those
		return false, nil
	}
	if lowest > 0 {
		t.lower(s.head, lowest)
		t.writes = append(t.writes, l.ring())
	}
	if _, err := q.kv.Commit(ctx, t.guards, t.writes); err != nil {
		return true, ignore(err)
	}
	if n > 0 {
		q.tell(Report{Kind: Reaped, Items: n})
	}
	if dead > 0 {
		q.tell(Report{Kind: Died, Items: dead, Why: why})
	}
	return true, nil
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
