package kvqueue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Commit acknowledges items and does what f asks for, in one transaction: what came of the
// items is in the store exactly once, however often they are tried. f is called once, and
// must not keep its argument.
//
// A batch that is more than one transaction of the store can hold is an [*InvalidError], before
// anything was sent. If the claims are lost, if somebody has settled an item, or if a guard
// of f does not hold, nothing was done: the error matches [ErrLost], [ErrSettled] or
// [ErrConflict], and items that nobody has settled stay claimed. After an answer that was lost Commit finds out
// whether the transaction was done; if the session or ctx has ended meanwhile it cannot, and the error matches [ErrUnknown].
// Items of another handle are an [*InvalidError].
func (q *Queue) Commit(ctx context.Context, items []Item, f func(tx *Tx)) error {
	if len(items) == 0 {
		return invalid("Commit", "there is no item to acknowledge")
	}
	tx, err := q.collect("Commit", f, 1+len(items), 2*weightOf(items))
	if err != nil {
		return err
	}
	if items, _, err = outcomes(ctx, items, func(verdict) bool { return false }); err != nil {
		return err
	}
	claims, err := begin(items, settlement{verdict: done})
	if err != nil {
		return err
	}
	l, err := q.sessionOf(claims)
	if err != nil {
		finish(claims, held)
		return err
	}
	gone, err := l.commit(ctx, claims, tx)
	switch {
	case err == nil:
		finish(claims, settled)
		q.tell(Report{Kind: Acked, Items: len(claims)})
		tx.tellAdded()
	case len(gone) > 0:
		l.endSome(claims, gone, err)
	case errors.Is(err, ErrLost):
		l.loseAll(claims, err)
	default:
		for _, c := range claims {
			if errors.Is(err, ErrUnknown) {
				c.doubt(done)
			}
		}
		finish(claims, held)
	}
	return err
}

// endSome ends those claims that are gone, and gives the others up. Those of which earlier calls are unsure were settled by one,
// unless that is not known either.
func (l *session) endSome(claims, gone []*claim, err error) {
	for _, c := range claims {
		switch {
		case !slices.Contains(gone, c):
			c.finish(held)
		case c.unsure && !errors.Is(err, ErrUnknown):
			l.endBefore(settlement{claim: c})
		case errors.Is(err, ErrLost):
			l.loseAll([]*claim{c}, err)
		default:
			c.finish(settled)
		}
	}
}

// sessionOf returns the session that has all of the claims.
func (q *Queue) sessionOf(claims []*claim) (*session, error) {
	l := claims[0].session
	for _, c := range claims {
		if c.session.q != q {
			return nil, invalid("Commit", "an item was taken from another handle, of %q", c.session.q.name)
		}
		if err := c.session.err(); err != nil {
			return nil, err
		}
		if c.session != l {
			return nil, &LostError{Queue: q.name, Reason: "the items are of several sessions"}
		}
	}
	return l, nil
}

// commit does the transaction of claims and tx, and tries again while it is refused for a
// reason of the queues' own. If claims have ended by another transaction it returns them.
func (l *session) commit(ctx context.Context, claims []*claim, tx *Tx) (gone []*claim, err error) {
	producer, unknown := random(), false
	pause := async.Jitter(0.5, async.Backoff(5*time.Millisecond, time.Second))
	for try := 1; ; try++ {
		asked := time.Now()
		if err := l.err(); err != nil {
			return nil, unsure(unknown, err)
		}
		t, err := l.plan(ctx, claims, tx, producer)
		if err == nil {
			err = l.commitEnd(ctx, t)
		}
		if err == nil {
			return nil, nil
		}
		full, before := errors.Is(err, ErrNoSpace), unknown
		if errors.Is(err, ErrUnknown) {
			unknown = true
			mayBeLate(claims)
		}
		if errors.Is(err, ErrConflict) || errors.Is(err, ErrUnknown) {
			gone, err = l.ended(ctx, claims, tx.guards)
			switch whole := unknown && len(gone) == len(claims); {
			case whole && slices.ContainsFunc(claims, func(c *claim) bool { return c.unsure }):
				return gone, fmt.Errorf("%w: %w: by this Commit, or by an earlier call whose answer was lost", ErrUnknown, ErrSettled)
			case whole:
				return nil, nil
			case slices.ContainsFunc(gone, func(c *claim) bool { return !c.unsure }):
				return gone, &LostError{Queue: l.q.name, Reason: "somebody has taken the claim away"}
			case len(gone) > 0: // this Commit would have ended all of them
				return gone, fmt.Errorf("%w: by an earlier call whose answer was lost", ErrSettled)
			case full && err == nil:
				return nil, unsure(before, ErrNoSpace) // and by this try nothing was done
			}
		} else if !unknown && ctx.Err() == nil {
			return nil, err
		}
		if err != nil && (errors.Is(err, ErrLost) || errors.Is(err, ErrConflict)) {
			return nil, unsure(unknown, err)
		}
		if async.Sleep(ctx, pause(try)) != nil {
			return nil, unsure(unknown, l.q.saysSince(ctx, err, asked))
		}
	}
}

// plan makes the transaction.
func (l *session) plan(ctx context.Context, claims []*claim, tx *Tx, producer uint64) (*transaction, error) {
	t := &transaction{q: l.q, guards: append([]Guard{l.lives()}, tx.guards...), writes: slices.Clone(tx.writes)}
	for _, c := range claims {
		t.claimed(l.id, c.key, c.fence, c.rec.group)
		t.gone(c.key)
	}
	return t, t.add(ctx, tx, producer)
}

// ended looks why a transaction was refused, or what has become of it. It returns those of
// the claims that have ended. If none has, the error is [ErrConflict] if a guard of the caller's does not hold,
// and a [*LostError] if the session has ended.
func (l *session) ended(ctx context.Context, claims []*claim, guards []Guard) (gone []*claim, err error) {
	results, err := l.readClaims(ctx, claims, guarded(guards)...)
	if err != nil {
		return nil, err
	}
	for i, c := range claims {
		if !c.isIn(results[i]) {
			gone = append(gone, c)
		}
	}
	if len(gone) > 0 {
		return gone, nil
	}
	return nil, allHold(guards, results[len(claims):])
}

// readClaims reads claims, and more at the same revision. It ends a session that the store has ended.
func (l *session) readClaims(ctx context.Context, claims []*claim, more ...Range) ([]Result, error) {
	ranges := []Range{{Begin: l.q.lay.session("l", l.id)}}
	for _, c := range claims {
		ranges = append(ranges, Range{Begin: l.q.lay.claim(l.id, c.key)})
	}
	results, _, err := l.q.kv.Read(ctx, append(ranges, more...)...)
	if err != nil {
		return nil, err
	}
	if len(results[0].Pairs) == 0 {
		l.end("the store has ended the session", nil)
		return nil, l.err()
	}
	return results[1:], nil
}

// isIn reports whether the claim is in the store, by what was read of it.
func (c *claim) isIn(r Result) bool { return len(r.Pairs) > 0 && r.Pairs[0].Rev == c.fence }

// guarded is what is to be read to know whether guards hold, which allHold says.
func guarded(guards []Guard) (ranges []Range) {
	for _, g := range guards {
		ranges = append(ranges, Range{Begin: g.Key, End: g.End, Limit: 1})
	}
	return ranges
}

func allHold(guards []Guard, results []Result) error {
	for i, g := range guards {
		if !g.holds(results[i]) {
			return ErrConflict
		}
	}
	return nil
}

// holds reports whether a guard holds of what it guards.
func (g Guard) holds(r Result) bool {
	there := len(r.Pairs) > 0
	switch g.Is {
	case Absent:
		return !there
	case Present:
		return there
	case Unchanged:
		return there && r.Pairs[0].Rev == g.Rev
	default:
		return there && bytes.Compare(r.Pairs[0].Value, g.Value) < 0
	}
}
