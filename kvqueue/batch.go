package kvqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file does settlements: those of several calls in one transaction.

// takeSettlements is how many of them one transaction holds.
func (q *Queue) takeSettlements(requests []*request[settlement]) int {
	return fitting(requests, q.maxItems)
}

// settleBatch settles claims of several calls in one transaction, and tries again what the
// others of the batch have spoilt.
func (l *session) settleBatch(ctx context.Context, batch []*request[settlement]) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.q.set.ttl, tooLong(l.q.set.ttl))
	defer cancel()
	pause := async.Jitter(0.5, async.Backoff(10*time.Millisecond, time.Second))
	batch = l.later(batch)
	unknown := false
	for try := 1; len(batch) > 0; try++ {
		l.settles.tries()
		err := l.err()
		if err == nil {
			if err = l.settle(ctx, batch); err == nil {
				l.settled(batch, nil)
				return
			}
		}
		full, before := errors.Is(err, ErrNoSpace), unknown
		if errors.Is(err, ErrUnknown) {
			unknown = true
			mayBeLate(claimsOf(batch))
		}
		switch {
		case errors.Is(err, ErrLost):
			l.settled(batch, unsure(unknown, err))
			return
		case errors.Is(err, ErrConflict), errors.Is(err, ErrUnknown):
			batch, err = l.sift(ctx, batch, unknown)
		}
		if full && err == nil {
			err, unknown = unsure(before, ErrNoSpace), before // what is left was not done by this try
		}
		l.settles.fails(err)
		switch {
		case full && errors.Is(err, ErrNoSpace):
			if batch = l.thatFree(batch, err); batch == nil {
				return
			}
		case (err != nil || try > 1) && async.Sleep(ctx, pause(try)) != nil:
			if err == nil {
				err = context.Cause(ctx)
			}
			l.unsettled(batch, unsure(unknown, err))
			return
		}
	}
}

// thatFree leaves those of a batch that make room: on a full store nothing else can be done.
// If all of them do, and were refused, there is nothing to be done.
func (l *session) thatFree(batch []*request[settlement], err error) (left []*request[settlement]) {
	var others []*request[settlement]
	for _, r := range batch {
		if r.of.verdict == done {
			left = append(left, r)
		} else {
			others = append(others, r)
		}
	}
	if len(others) == 0 {
		left, others = nil, batch
	}
	l.unsettled(others, err)
	return left
}

// settled answers those whose claims are no more.
func (l *session) settled(batch []*request[settlement], err error) {
	if err != nil {
		l.loseAll(claimsOf(batch), err)
	}
	for _, r := range batch {
		if err == nil {
			r.of.claim.finish(settled)
			l.q.tell(l.reportOf(r.of))
		}
		r.answer(err)
	}
}

// mayBeLate notes that the answer to a transaction that may acknowledge claims was lost.
func mayBeLate(claims []*claim) {
	for _, c := range claims {
		c.late = true
	}
}

func claimsOf(batch []*request[settlement]) []*claim {
	claims := make([]*claim, len(batch))
	for i, r := range batch {
		claims[i] = r.of.claim
	}
	return claims
}

// settledBefore answers one whose claim was settled by an earlier call whose answer was lost.
func (l *session) settledBefore(r *request[settlement]) {
	same := r.of.claim.as == r.of.verdict
	if l.endBefore(r.of); same || r.of.last {
		r.answer(nil)
	} else {
		r.answer(fmt.Errorf("%w: by an earlier call whose answer was lost: %v", ErrSettled, r.of.claim.key))
	}
}

// endBefore ends a claim that was settled by an earlier call, and tells the observer of that.
func (l *session) endBefore(s settlement) {
	s.verdict = s.claim.as
	s.claim.finish(settled)
	l.q.tell(l.reportOf(s))
}

// settledByOneOf answers one whose claim was settled by this call or by an earlier one with another verdict: the answers of
// both were lost.
func (l *session) settledByOneOf(r *request[settlement]) {
	r.of.claim.finish(settled)
	r.answer(fmt.Errorf("%w: %w: by this call, or by an earlier one whose answer was lost: %v", ErrUnknown, ErrSettled, r.of.claim.key))
}

// unsettled answers those whose claims are as they were. Those that nobody would settle
// after this are tried again.
func (l *session) unsettled(batch []*request[settlement], err error) {
	for _, r := range batch {
		if errors.Is(err, ErrUnknown) {
			r.of.claim.doubt(r.of.verdict)
		}
		if r.of.last {
			l.add(r.of, time.Second)
		} else {
			r.of.claim.finish(held)
		}
		r.answer(err)
	}
}

// settle does a batch in one transaction.
func (l *session) settle(ctx context.Context, batch []*request[settlement]) error {
	t := transaction{q: l.q, guards: []Guard{l.lives()}}
	lowest := uint64(0)
	for _, r := range batch {
		s, c := r.of, r.of.claim
		t.claimed(l.id, c.key, c.fence, c.rec.group)
		switch {
		case s.verdict == done:
			t.gone(c.key)
		case s.dies():
			rec := c.rec
			rec.failures++
			t.buried(c.key, rec, s.why)
		default:
			rec := c.rec
			if s.verdict == failed {
				rec.failures++
			}
			t.back(c.key, rec)
			if h := c.key.hint(); rec.group == "" && (lowest == 0 || h < lowest) {
				lowest = h
			}
		}
	}
	if lowest > 0 {
		s, err := l.q.read(ctx)
		if err != nil {
			return err
		}
		t.lower(s.head, lowest)
		t.writes = append(t.writes, l.ring())
	}
	begin := time.Now()
	err := l.commitEnd(ctx, &t)
	l.took.Store(int64(time.Since(begin)))
	return err
}

// sift looks what has become of the claims of a batch that was refused, or whose answer was
// lost. Those that are gone were settled if they may have been, or else were taken away.
// It returns those that are claimed still.
func (l *session) sift(ctx context.Context, batch []*request[settlement], unknown bool) (left []*request[settlement], err error) {
	results, err := l.readClaims(ctx, claimsOf(batch))
	switch {
	case errors.Is(err, ErrLost): // the next try is told so
		return batch, nil
	case err != nil:
		return batch, err
	}
	for i, r := range batch {
		switch {
		case r.of.claim.isIn(results[i]):
			left = append(left, r)
		case unknown && r.of.claim.unsure && r.of.claim.as != r.of.verdict && !r.of.last:
			l.settledByOneOf(r)
		case unknown:
			l.settled(batch[i:i+1], nil)
		case r.of.claim.unsure:
			l.settledBefore(r)
		default:
			l.settled(batch[i:i+1], &LostError{Queue: l.q.name, Reason: "somebody has taken the claim away"})
		}
	}
	return left, nil
}
