package kvqueue

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A verdict is what becomes of an item.
type verdict uint8

const (
	done     verdict = iota // it is gone
	failed                  // it goes back to its place, one failure later, or to the dead
	returned                // it goes back to its place
)

// A settlement is one claim and its verdict.
type settlement struct {
	claim   *claim
	verdict verdict
	why     string // of a failure
	now     bool   // a delay before the next run is over, or there is to be none
	last    bool   // nobody settles the item after this, so it is tried until the session ends
}

// Ack acknowledges items before their scope ends: they are gone from the queue. Items that
// others settle, or have settled, are [ErrSettled]; those that may be somebody else's by
// now are a [*LostError], and stay so. Ack waits for the store, and for the end of ctx. On an error that
// matches [ErrUnknown] the items may be gone, or not: call it again, which waits for what comes of the
// first call, tries again if that is nothing, and returns nil if the items are gone by it.
func (q *Queue) Ack(ctx context.Context, items ...Item) error {
	return settleNow(ctx, items, done, nil)
}

// Nack gives items back before their scope ends, as a failure of theirs would: to their old
// places, before everything that was added later, after the [RetryDelay], or to the dead
// letters after the last of [MaxAttempts]. Its errors are those of [Queue.Ack]. A nil why
// gives them back without a failure: no attempt is spent, and no delay comes before the
// next.
//
// After an error the end of the scope gives back what is still claimed, also if the scope ends well:
// unless [Queue.Ack] or [Queue.Commit] was called for it later, it is never acknowledged.
func (q *Queue) Nack(ctx context.Context, why error, items ...Item) error {
	if why == nil {
		return settleNow(ctx, items, returned, nil)
	}
	return settleNow(ctx, items, failed, why)
}

// settleNow settles items that nobody has settled, or is settling.
func settleNow(ctx context.Context, items []Item, v verdict, why error) error {
	given := len(items) > 0
	items, before, err := outcomes(ctx, items, func(earlier verdict) bool { return earlier == v })
	if err != nil || given && len(items) == 0 {
		return err
	}
	as := settlement{verdict: v, why: reason(why)}
	claims, err := begin(items, as)
	if err != nil {
		leaveAll(before) // the next call may ask for these again
		return err
	}
	all := make([]settlement, len(claims))
	for i, c := range claims {
		all[i] = as
		all[i].claim = c
	}
	if err = settleClaims(ctx, all); err != nil {
		leaveAll(before)
	}
	return err
}

// begin gives all claims of items to the caller to settle so, or none. An item that is there
// twice counts once.
func begin(items []Item, as settlement) (claims []*claim, err error) {
	had := make(map[*claim]bool, len(items))
	for _, i := range items {
		switch {
		case i.claim == nil:
			err = invalid("item", "it was not taken from a queue")
		case had[i.claim]:
			continue
		case !i.claim.begin(as):
			err = i.claim.past(i.Key)
		}
		if err != nil {
			finish(claims, held)
			return nil, err
		}
		had[i.claim] = true
		claims = append(claims, i.claim)
	}
	return claims, nil
}

func finish(claims []*claim, to claimState) {
	for _, c := range claims {
		c.finish(to)
	}
}

// settleAll settles, at the end of their scope, those of items that nobody has settled or
// is settling, and reports whether there were any. It waits for calls that are on their way.
// It calls begun when they are its own to settle.
func settleAll(ctx context.Context, items []Item, v verdict, why error, begun func()) (left bool, err error) {
	_ = awaitLeft(ctx, items) // if ctx ends, what is on its way goes on so
	all, lost := beginAll(items, v, why)
	begun()
	if err := settleClaims(ctx, all); err != nil {
		return true, err
	}
	return len(all) > 0, lost
}

// beginAll gives those of items to the caller to settle that nobody has settled or is settling, and
// returns why the others are lost, if they are.
func beginAll(items []Item, v verdict, why error) (all []settlement, lost error) {
	end := settlement{verdict: v, why: reason(why)}
	for _, i := range items {
		if s, mine := i.claim.beginEnd(end); mine {
			all = append(all, s)
		} else if past := i.claim.past(i.Key); errors.Is(past, ErrLost) {
			lost = past
		}
	}
	return all, lost
}

// settleClaims settles claims, each in the name of the session that has it.
func settleClaims(ctx context.Context, all []settlement) (err error) {
	var sessions []*session
	requests := map[*session][]*request[settlement]{}
	for _, s := range all {
		l := s.claim.session
		if requests[l] == nil {
			sessions = append(sessions, l)
		}
		requests[l] = append(requests[l], newRequest(s))
	}
	for _, l := range sessions {
		l.settles.addAll(l.handToClaim(requests[l]))
	}
	for _, l := range sessions {
		open, e := l.settles.await(ctx, requests[l])
		switch {
		case open: // the task settles them all the same, or they are lost
			e = fmt.Errorf("%w: %w", ErrUnknown, e)
		case errors.Is(e, ErrClosed):
			e = l.closed(requests[l])
		}
		if err == nil {
			err = e
		}
	}
	if errors.Is(err, ErrUnknown) {
		for _, s := range requests {
			leaveAll(s)
		}
	}
	return err
}

// closed answers requests that came when nothing is settled any more, as the handle is closed, or
// async.Shutdown has ended what stands behind it: nobody renews the session, and the claims are lost.
func (l *session) closed(requests []*request[settlement]) error {
	l.end("the queue was closed", ErrClosed)
	<-l.lost.Done()
	var claims []*claim
	for _, r := range requests {
		if errors.Is(r.err, ErrClosed) {
			claims = append(claims, r.of.claim)
		}
	}
	l.loseAll(claims, l.why)
	return l.why
}

// reason is the text of an error, as a dead letter keeps it. A panic of the error's own is
// its text. It is empty if there is none.
func reason(err error) (text string) {
	if err == nil {
		return ""
	}
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprintf("%T, whose Error panics", err)
		}
	}()
	text = err.Error()
	return strings.ToValidUTF8(text[:min(len(text), 1024)], "")
}
