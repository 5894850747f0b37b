package locks

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/locks/internal/pause"
)

const (
	// releaseTime is how long a release is tried at most.
	releaseTime = 5 * time.Second
	// withdrawTime is how long it is tried at most to withdraw a request that nobody
	// waits for any more.
	withdrawTime = 2 * time.Second
)

// patience bounds one call for a lease.
func patience(lease time.Duration) time.Duration { return lease / 6 }

// Release gives the lock back: [Hold.Err] is [ErrReleased] from then on, then a renewal on
// its way is waited for, then the store is told, for at most 5 s, and no longer than the
// lease lasts. It does so, too, when ctx has ended. It may be called any number of
// times: later calls wait for the first and return the same.
//
// It returns a [*LostError] if the lock was lost before, which the store may be the first to
// say, and a [*ReleaseError] if it was not
// but could not be given back. Work that runs in [Hold.Run] is cancelled with [ErrReleased] and
// not waited for. For a lock that With holds it is an error that matches [ErrValidation]: it
// is given back when the body has ended.
func (h *Hold) Release(ctx context.Context) error {
	if h.scoped {
		return &ValidationError{"Release", "the call that has granted the lock gives it back, when its body has ended"}
	}
	h.mu.Lock()
	released := h.released
	if released == nil {
		h.released = make(chan struct{})
	}
	h.mu.Unlock()
	if released != nil {
		<-released
		return h.result
	}
	defer close(h.released)
	lost := h.end()
	h.result = h.giveBack(ctx) // if it was revoked, too: the next one is not to wait for the end of the lease
	if lost != nil {
		h.result = lost
	}
	return h.result
}

// Run runs body under a lock of [Manager.Acquire], as With does: body is the body of an
// [async.Scope], and its ctx is cancelled when the lock is lost or given back. The lock is
// not given back at the end. If it was given back before body had ended, the error matches
// [ErrReleased], also if body returned nil.
func (h *Hold) Run(ctx context.Context, body func(ctx context.Context) error) error {
	if body == nil {
		panic("locks: Run with a nil body: pass what is to be called")
	}
	if err := h.Err(); err != nil {
		return err
	}
	return runUnder(ctx, body, nil, h)
}

// end has the hold be needed no more. It looks at the clock once more, and returns the loss
// if there was one; after it only the store can say that there was one. It is renewed until
// giveBack.
func (h *Hold) end() *LostError {
	lost, _ := h.lease.End().(*LostError)
	if lost != nil {
		h.tellLost(lost)
	}
	if !h.lossTold.Load() { // else who tells of the loss tells of the end after that
		h.tellEnded()
	}
	return lost
}

// abandon has a hold be renewed no more that nobody was given.
func (h *Hold) abandon() {
	h.end()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = h.lease.Release(ctx)
}

// giveBack tells the store that a hold which was ended is free. A renewal on its way is
// waited for first, so that none comes after.
func (h *Hold) giveBack(ctx context.Context) error {
	h.mu.Lock()
	data := h.data
	h.mu.Unlock()
	now, lost := h.m.clock.Now(), h.loss()
	left := min(h.lease.Term().Believed()-now, releaseTime)
	ctx, cancel := bounded(ctx, left)
	defer cancel()
	landing, stop := context.WithTimeout(ctx, min(patience(h.c.lease), left/2))
	defer stop()
	_ = h.lease.Release(landing) // no renewal is sent from now on
	switch {
	case lost == nil && left <= 0: // its time has run out since the body ended
		return h.notReleased(ErrNotOwner)
	case left <= 0 || lost != nil && lost.Reason == LostStolen:
		return nil // there is nothing to give back, or nobody knows
	}
	released, err := h.m.release(ctx, h.name, Ref{ID: h.id}, data, patience(h.c.lease))
	h.m.tell(Event{Kind: EventReleased, Key: h.name.Key, Token: h.token, Err: err, Took: now - h.since})
	switch {
	case lost != nil:
		return nil
	case err != nil:
		return h.notReleased(err)
	case !released:
		return h.stolen()
	}
	return nil
}

// stolen is what it means that the store does not know the lease which is to be given back. If
// its time has not run out, somebody has taken it before, perhaps while a body ran.
func (h *Hold) stolen() error {
	if h.m.clock.Now() >= h.lease.Term().Believed() {
		return h.notReleased(ErrNotOwner)
	}
	lost := &LostError{Key: h.name.Key, Token: h.token, Reason: LostStolen}
	h.taken.Store(lost)
	h.m.tell(Event{Kind: EventLost, Key: h.name.Key, Token: h.token, Err: lost})
	return lost
}

func (h *Hold) notReleased(err error) error { return &ReleaseError{Key: h.name.Key, Err: err} }

// release gives back what ref means, or withdraws it. Until ctx ends it tries again, each
// time for most at most. It says false if there was nothing to give back.
func (m *Manager) release(ctx context.Context, name Name, ref Ref, data *string, most time.Duration) (bool, error) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		call, cancel := context.WithTimeout(ctx, most)
		released, err := m.store.Release(call, name, ref, data)
		cancel()
		if err == nil {
			return released || wait > 50*time.Millisecond, nil // the answer to an earlier try may have been lost
		}
		if !transient(err) {
			return false, err
		}
		if pause.For(ctx, wait) != nil {
			return false, both(Unavailable(err), ErrUnknownOutcome)
		}
	}
}
