package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ambit-go/ambit/lease"
	"github.com/ambit-go/ambit/locks/internal/pause"
)

// This file asks the store for more time, for what the keeper of a manager says.

var (
	errRevoked  = fmt.Errorf("%w: it was revoked", lease.ErrLost)
	errNotYours = fmt.Errorf("%w: the store does not have it any more", lease.ErrLost)
	// errStalled is why the lease of a body is not renewed that does not say that it gets on.
	errStalled = errors.New("the body has not said that it gets on")
)

// complete says that a store has answered with too much or too little.
func complete(got, want int) error {
	if got != want {
		return fmt.Errorf("%d answers to %d requests", got, want)
	}
	return nil
}

// renew is the function of the keeper: one call of the store for all of a batch, but for
// those whose bodies stall.
func (m *Manager) renew(ctx context.Context, batch []lease.Renewal[*Hold]) ([]error, error) {
	sent, errs := m.clock.Now(), make([]error, len(batch))
	var list []Renewal
	for i, r := range batch {
		if r.Of.stalled(sent) && r.Of.extends.Load() == 0 {
			errs[i] = errStalled
			r.Of.run.refused.Store(true)
			continue
		}
		list = append(list, r.Of.renewal(r.Length))
	}
	if len(list) == 0 {
		return errs, nil
	}
	results, err := []RenewResult(nil), errPanicked
	defer func() { // also if the store panics
		e := Event{Kind: EventRenewed, Count: len(list), Took: m.clock.Now() - sent}
		if err != nil {
			e.Kind, e.Err = EventRenewFailed, Unavailable(err)
		}
		m.tell(e)
	}()
	if results, err = m.store.Renew(ctx, list); err == nil {
		err = complete(len(results), len(list))
	}
	next := 0
	for i, r := range batch {
		switch {
		case errs[i] != nil:
			continue
		case err != nil:
			errs[i] = err
		default:
			errs[i] = r.Of.renewed(list[next], results[next])
		}
		next++
	}
	return errs, nil
}

// renewal is the request for d more.
func (h *Hold) renewal(d time.Duration) Renewal {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Renewal{Name: h.name, Ref: Ref{ID: h.id}, Lease: d, Data: h.data}
}

// renewed says what the answer to a renewal means to the keeper.
func (h *Hold) renewed(r Renewal, result RenewResult) error {
	switch result.Verdict {
	case Extended:
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.data == r.Data { // the store knows of it now
			h.data = nil
		}
		return nil
	case NotYours:
		return errNotYours
	case Revoked:
		return errRevoked
	}
	return lease.ErrSkipped
}

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
	ctx, cancel := context.WithTimeout(ctx, min(patience(d), h.Remaining()))
	defer cancel()
	h.extends.Add(1)
	defer h.extends.Add(-1)
	for {
		err := h.lease.Extend(ctx, d)
		if lost := h.Err(); lost != nil {
			return lost
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, lease.ErrSkipped):
			return both(Unavailable(err), ErrUnknownOutcome)
		case pause.For(ctx, 10*time.Millisecond) != nil:
			return Unavailable(errSkipped)
		}
	}
}

// resumption hears of the store being reached again after it was not, as long as something is
// held. The store may have forgotten what it was told last, so all is renewed at once then.
type resumption struct {
	mu    sync.Mutex
	holds int
	stop  func() // nil: nothing is held
}

// held counts n locks more that are held.
func (m *Manager) held(n int) {
	of, ok := m.store.(Resumer)
	if !ok {
		return
	}
	r := &m.resumed
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds += n
	switch {
	case r.holds > 0 && r.stop == nil:
		r.stop = of.Resumed(m.keeper.RenewNow)
	case r.holds == 0 && r.stop != nil:
		r.stop()
		r.stop = nil
	}
}
