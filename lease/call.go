package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// This file makes the calls of a renew function, and says what an answer means.

var (
	// errNoAnswer is what a renewal has failed with whose call did not come back in time.
	errNoAnswer = fmt.Errorf("lease: no answer in time: %w", context.DeadlineExceeded)
	// errNoReturn is what a renewal has failed with whose call did not return.
	errNoReturn = errors.New("lease: the renew function panicked or called Goexit")
)

// A call is one call of a renew function. Guarded by mu of the keeper until send, which
// takes it over.
type call[T any] struct {
	flight
	ctx    context.Context
	leases []*Lease      // whose entries wait for it
	length time.Duration // what it asks for; 0: for the usual length of each lease
	sent   time.Duration // no later than it is made
	until  time.Duration // the keeper waits for it no longer
	alone  bool          // counted in alone of the keeper
}

// A request is what a call asks for one lease, and what became of that.
type request struct {
	lease *Lease
	term  Term // granted if the answer is yes
	err   error
	verdict
}

// A verdict is the sort of an answer.
type verdict int

const (
	failed  verdict = iota // not renewed, as far as is known
	granted                // renewed
	skipped                // left out of the call
	lost                   // not to be renewed any more
)

// verdictOf returns the sort of an answer. It calls methods of users' errors.
func verdictOf(err error) verdict {
	switch {
	case err == nil:
		return granted
	case errors.Is(err, ErrLost):
		return lost
	case errors.Is(err, ErrSkipped):
		return skipped
	}
	return failed
}

// newCallLocked has leases wait for a call that is made soon, with a child of ctx. They are
// kept, and wait for no other.
func (k *Keeper[T]) newCallLocked(ctx context.Context, leases []*Lease, length, now time.Duration) *call[T] {
	c := &call[T]{leases: leases, length: length, sent: now, until: never}
	for _, l := range leases {
		c.until = min(c.until, now+l.patience(now, c.lengthOf(k.kept[l].length)))
	}
	c.landed = make(chan struct{})
	c.needed.Store(int64(len(leases)))
	c.ctx, c.cancel = context.WithTimeout(ctx, c.until-now)
	for _, l := range leases {
		k.kept[l].call = c
		l.board(&c.flight)
	}
	return c
}

func (c *call[T]) lengthOf(usual time.Duration) time.Duration {
	if c.length > 0 {
		return c.length
	}
	return usual
}

// send makes the call, and has the keeper and the leases know the answers.
func (k *Keeper[T]) send(c *call[T]) []request {
	requests, batch := k.requests(c)
	defer func() {
		k.note(c, requests)
		for _, l := range c.leases {
			l.land(&c.flight)
		}
		close(c.landed)
		c.cancel()
	}()
	if len(batch) == 0 {
		return nil
	}
	errs, err := k.renew(c.ctx, batch)
	if err == nil && errs != nil && len(errs) != len(batch) {
		err = fmt.Errorf("lease: %d answers to %d renewals", len(errs), len(batch))
	}
	for i := range requests {
		answer := err
		if err == nil && errs != nil {
			answer = errs[i]
		}
		v := verdictOf(answer) // may panic, then the renewal has failed
		requests[i].err, requests[i].verdict = answer, v
	}
	return requests
}

// requests returns what the call asks for. A lease that was released or given up since the
// call was planned is left out.
func (k *Keeper[T]) requests(c *call[T]) (requests []request, batch []Renewal[T]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.sent = k.Now()
	for _, l := range c.leases {
		if e := k.kept[l]; e != nil && !l.givenUp() {
			length := c.lengthOf(e.length)
			term := Term{Granted: c.sent, Length: length}
			requests = append(requests, request{lease: l, term: term, err: errNoReturn})
			batch = append(batch, Renewal[T]{Of: e.of, Length: length})
		}
	}
	return requests, batch
}

// note has each lease know what was said of it, and plans its next renewal.
func (k *Keeper[T]) note(c *call[T], requests []request) {
	for _, r := range requests {
		r.lease.answered(r)
		if r.verdict == lost { // also if the owner has ended the belief, and goes on to hold
			k.forget(r.lease, nil)
			r.lease.leave()
		}
	}
	now, jitter := k.Now(), rand.Float64() // one jitter, so that what was renewed together stays together
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.alone {
		k.alone--
	}
	for _, r := range requests {
		if e := k.kept[r.lease]; e != nil {
			e.plan(c, r, now, jitter)
			k.lookLocked(e.next(r.lease))
		}
	}
}

// plan plans the next renewal after the answer to one. If nobody has waited for the answer
// any more, that was a failure already, and only a yes counts.
func (e *entry[T]) plan(c *call[T], r request, now time.Duration, jitter float64) {
	waited := e.call == c
	if waited {
		e.call = nil
	}
	switch {
	case r.verdict == granted:
		e.granted(r.term, jitter)
	case !waited:
	case r.verdict == skipped:
		e.skipped(now, c.sent, rand.Float64())
	default:
		e.failed(now, c.sent, rand.Float64())
	}
}

// overdue gives up a call that does not come back.
func (e *entry[T]) overdue(l *Lease, now time.Duration) {
	if e.call == nil || now < e.call.until {
		return
	}
	e.failed(now, e.call.sent, rand.Float64())
	e.call = nil
	l.failedWith(errNoAnswer)
}

// renewNow renews a lease in a call of its own, on the calling goroutine.
func (k *Keeper[T]) renewNow(ctx context.Context, l *Lease, length time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, l.Remaining())
	defer cancel()
	for {
		c, other, err := k.boardNow(ctx, l, length)
		switch {
		case err != nil:
			return err
		case other != nil:
			select {
			case <-other.landed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			continue
		}
		if requests := k.send(c); len(requests) == 1 {
			return requests[0].err
		}
		return ErrEnded // it was left out: its Err says why
	}
}

// boardNow has the lease wait for a call of its own, unless it waits for another, which is
// returned.
func (k *Keeper[T]) boardNow(ctx context.Context, l *Lease, length time.Duration) (c, other *call[T], err error) {
	now := k.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch e := k.kept[l]; {
	case e == nil:
		return nil, nil, ErrEnded
	case e.call != nil:
		return nil, e.call, nil
	}
	c = k.newCallLocked(ctx, []*Lease{l}, length, now)
	k.lookLocked(c.until)
	return c, nil, nil
}
