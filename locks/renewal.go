package locks

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// This file says what the answer to a renewal means for a hold.

// An answer is what became of a renewal.
type answer struct {
	sent    time.Duration // when it was sent
	lease   time.Duration // what was asked for
	verdict RenewVerdict
	err     error   // why there is none; then the verdict is Skipped
	jitter  float64 // that of the next renewal: those that were sent together stay together
}

// complete says that a store has answered with too much or too little.
func complete(got, want int) error {
	if got != want {
		return fmt.Errorf("%d answers to %d requests", got, want)
	}
	return nil
}

// renewal is the request for d more.
func (h *Hold) renewal(d time.Duration) Renewal {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Renewal{Name: h.name, Ref: Ref{ID: h.id}, Lease: d, Data: h.data}
}

// told notes that the store knows of data.
func (h *Hold) told(data *string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.data == data {
		h.data = nil
	}
}

// renewed notes the answer to a renewal. One that comes late counts as well: a lease that
// the store has given is given, from when it was asked for.
func (h *Hold) renewed(f *flight, a answer) {
	now := h.m.clock.Now()
	h.mu.Lock()
	current := h.flight == f // else another one was sent in its place
	if current {
		h.flight = nil
	}
	live := !h.ended && h.lost == nil
	late := now >= h.deadline
	gone := a.verdict == NotYours || a.verdict == Revoked
	switch {
	case !live || late || gone:
	case a.verdict == Extended:
		h.lastsLocked(a.sent, a.lease, a.jitter)
	case current:
		h.failedLocked(now, a.sent, a.err, a.err == nil)
	}
	h.mu.Unlock()
	switch {
	case !live:
	case late: // the time had run out before it came
		h.lose("", nil)
	case a.verdict == NotYours:
		h.lose(LostStolen, nil)
	case gone:
		h.lose(LostRevoked, nil)
	}
}

// failedLocked notes that a renewal which was sent at the time sent did not succeed. One
// that was skipped is asked for again at once, alone.
func (h *Hold) failedLocked(now, sent time.Duration, err error, skipped bool) {
	if err == nil {
		err = errSkipped
	}
	h.due = max(now, sent+again(h.c.lease))
	if skipped && !h.alone {
		h.due = now
	}
	h.failures++
	h.alone, h.err = skipped, err
	h.lot = rand.IntN(lots[min(h.failures, len(lots)-1)])
	h.earliest = h.due - again(h.c.lease)/5
}
