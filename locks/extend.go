package locks

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/ambit-go/ambit/locks/internal/pause"
)

// Extend asks the store at once to have the lease last for d from now; it never gets
// shorter. Later renewals ask for its usual length. Another renewal that is on its way is waited
// for first. Extend blocks until the store has answered, at most a sixth of d or of what
// remains, if that is less, or until ctx is done.
//
// It returns a [*LostError] if the lock is lost, [ErrReleased] if it was given back, and an
// error that matches [ErrUnavailable] and [ErrUnknownOutcome] if the store did not answer: then
// the lock is held as long as [Hold.Err] says so.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	if err := checkLease(d, h.m.traits); err != nil {
		return err
	}
	if err := h.Err(); err != nil {
		return err
	}
	now := h.m.clock.Now()
	most := min(patience(d), h.remaining(now))
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	f, err := h.takeOff(ctx, now+most)
	if err != nil {
		return err
	}
	defer h.land(f)
	err = h.extend(f, d)
	if over := h.Err(); over != nil { // it may have been cut short by that
		return over
	}
	return err
}

// takeOff begins a renewal of the caller's own when no other is on its way. The first of two might
// come last: it would bring back an older text, or come after the release, which waits
// for one.
func (h *Hold) takeOff(ctx context.Context, until time.Duration) (*flight, error) {
	f := &flight{trip: trip{make(chan struct{})}, until: until}
	f.needed.Store(1)
	f.ctx, f.cancel = context.WithCancel(ctx)
	for {
		other, err := h.boardAlone(f)
		switch {
		case err == nil && other == nil:
			return f, nil
		case err == nil:
			select {
			case <-other.done:
				continue
			case <-ctx.Done():
				err = Unavailable(context.Cause(ctx))
			}
		}
		f.cancel()
		return nil, err
	}
}

// boardAlone notes that f renews the hold, unless another does, which it returns.
func (h *Hold) boardAlone(f *flight) (other *flight, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.lost != nil:
		return nil, h.lost
	case h.ended:
		return nil, ErrReleased
	case h.flight != nil:
		return h.flight, nil
	}
	f.sent, h.flight = h.m.clock.Now(), f
	return nil, nil
}

// land is called when the call has come back, or has panicked. The watchdog has not renewed the
// hold meanwhile.
func (h *Hold) land(f *flight) {
	h.mu.Lock()
	if h.flight == f { // there was no answer
		h.flight = nil
	}
	h.mu.Unlock()
	close(f.done)
	f.cancel()
	h.m.dog.plan(h)
}

// extend makes the call.
func (h *Hold) extend(f *flight, d time.Duration) error {
	for {
		sent := h.m.clock.Now()
		r := h.renewal(d)
		results, err := h.m.store.Renew(f.ctx, []Renewal{r})
		if err == nil {
			err = complete(len(results), 1)
		}
		if err != nil {
			return beside(Unavailable(err), ErrUnknownOutcome)
		}
		if results[0].Verdict != Skipped {
			if results[0].Verdict == Extended {
				h.told(r.Data)
			}
			h.renewed(f, answer{sent: sent, lease: d, verdict: results[0].Verdict, jitter: rand.Float64()})
			return nil
		}
		if err := pause.For(f.ctx, 10*time.Millisecond); err != nil {
			return Unavailable(err)
		}
	}
}
