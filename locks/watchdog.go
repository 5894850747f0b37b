package locks

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
)

// lookOften is how often the watchdog looks at the clock at least: timers do not count
// the time in which the machine was suspended.
const lookOften = time.Second

// mostAlone is how many renewals that take no others along are on their way at most.
const mostAlone = 32

// A watchdog keeps the leases of a manager alive, and notes the loss of those that it
// could not. It has one timer for all of them. The function that the timer calls waits for nothing:
// the calls of the store are made by tasks.
type watchdog struct {
	m *Manager

	mu    sync.Mutex
	holds map[*Hold]struct{}
	timer *time.Timer
	at    time.Duration // when the timer fires; 0: it does not
	next  time.Duration // when there is something to do
	// deaf ends the listening for a store that was away; nil while nothing is held.
	deaf func()
	// begun is how many calls of the timer are to come or go on, and quiet is told when one ends.
	begun  int
	quiet  sync.Cond // of mu
	lonely int       // renewals of one lease that takes no others along, on their way
}

// A trip is a call of the store that several callers are interested in.
type trip struct {
	done chan struct{} // closed when it has come back
}

// wait waits until it has come back, for d at most.
func (f *trip) wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-f.done:
	case <-t.C:
	case <-ctx.Done():
	}
}

// A flight is a call that renews leases.
type flight struct {
	trip
	sent  time.Duration
	until time.Duration // it is not waited for longer

	needed atomic.Int64 // holds that want to be renewed still
	ctx    context.Context
	cancel context.CancelFunc
}

// leave says that a hold does not need the call any more. One that nobody needs is cut
// short.
func (f *flight) leave() {
	if f.needed.Add(-1) == 0 {
		f.cancel()
	}
}

// add begins to look after a hold.
func (w *watchdog) add(h *Hold) {
	h.mu.Lock()
	now := w.m.clock.Soon()
	at := h.nextLocked(now)
	h.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds[h] = struct{}{}
	w.listenLocked()
	w.armLocked(now, at)
}

// plan has the watchdog look at a hold again when that is due: while a renewal was on its way
// it was not.
func (w *watchdog) plan(h *Hold) {
	h.mu.Lock()
	now := w.m.clock.Soon()
	at := h.nextLocked(now)
	h.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.holds[h]; there {
		w.armLocked(now, at)
	}
}

// remove ends that. A timer that fires for nothing does no harm.
func (w *watchdog) remove(h *Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.holds, h); len(w.holds) == 0 && w.at != 0 {
		if w.timer.Stop() {
			w.begun--
		}
		w.at = 0
	}
	w.listenLocked()
}

// wake has the watchdog look at its holds now.
func (w *watchdog) wake(now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.holds) > 0 {
		w.armLocked(now, now)
	}
}

// renewAll has all leases renewed at once: the store may have forgotten them. Those whose
// renewal is on its way will have its answer.
func (w *watchdog) renewAll() {
	now := w.m.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for h := range w.holds {
		h.mu.Lock()
		h.due, h.earliest = now, now
		h.mu.Unlock()
	}
	if len(w.holds) > 0 {
		w.armLocked(now, now)
	}
}

// listenLocked hears of the store being reached again, as long as something is held.
func (w *watchdog) listenLocked() {
	of, ok := w.m.store.(Resumer)
	switch {
	case !ok:
	case len(w.holds) > 0 && w.deaf == nil:
		w.deaf = of.Resumed(w.renewAll)
	case len(w.holds) == 0 && w.deaf != nil:
		w.deaf()
		w.deaf = nil
	}
}

// armLocked has the watchdog look at its holds at the time at, unless it does before.
func (w *watchdog) armLocked(now, at time.Duration) {
	if w.at != 0 && w.next <= at {
		return
	}
	w.next = at
	at = max(min(at, now+lookOften), now)
	if w.at != 0 && w.at <= at {
		return
	}
	w.at = at
	if w.timer == nil {
		w.timer = time.AfterFunc(at-now, w.fire)
		w.begun++
	} else if !w.timer.Reset(at - now) {
		w.begun++
	}
}

// settle waits for calls of the timer that have begun, if nothing is held: then none comes after.
func (w *watchdog) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.holds) == 0 && w.begun > 0 {
		w.quiet.Wait()
	}
}

// fired is called when a call of the timer ends.
func (w *watchdog) fired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun--
	w.quiet.Broadcast()
}

// fire notes losses and starts the renewals that are due.
func (w *watchdog) fire() {
	defer w.fired()
	now := w.m.clock.Now()
	r := &round{next: now + maxLease}
	w.mu.Lock()
	if w.at = 0; now < w.next { // it was only to see whether the machine was suspended
		r.next = w.next
	} else {
		r = w.roundLocked(now)
	}
	if len(w.holds) > 0 {
		w.armLocked(now, r.next)
	}
	w.mu.Unlock()
	for _, h := range r.late {
		h.lose("", nil)
	}
	for _, f := range r.flights {
		w.start(f)
	}
}

// A round is what is to be done at one time.
type round struct {
	late    []*Hold
	flights []*renewals
	next    time.Duration
}

// A class is a sort of leases that are renewed together: of about the same length, and of
// about the same time left if something has gone wrong. So a call for long leases, which
// may take long, holds up no short ones. A renewal that has failed is sent again in lots: if it was one
// lease that had the call of all fail, it meets few of the others again.
type class struct {
	length int
	left   int
	lot    int
	alone  *Hold // nil: together with others
}

// lots are into how many a class is divided after so many failures in a row.
var lots = [...]int{1, 8, 64}

// renewals are what one call renews.
type renewals struct {
	class  class
	due    bool // one of them is; else it is too early to send them
	next   time.Duration
	holds  []*Hold
	flight *flight
}

// roundLocked looks at every hold.
func (w *watchdog) roundLocked(now time.Duration) *round {
	r := &round{next: now + maxLease}
	classes := map[class]*renewals{}
	for h := range w.holds {
		h.mu.Lock()
		c, ready := h.classLocked(now)
		switch {
		case now >= h.deadline:
			r.late = append(r.late, h)
		case !ready:
			r.next = min(r.next, h.nextLocked(now))
		default:
			g := classes[c]
			if g == nil {
				g = &renewals{class: c, next: h.deadline}
				classes[c] = g
			}
			g.holds = append(g.holds, h)
			g.due = g.due || now >= h.due
			g.next = min(g.next, max(h.due, now), h.deadline)
		}
		h.mu.Unlock()
	}
	for _, g := range classes {
		if !g.due || g.class.alone != nil && w.lonely >= mostAlone {
			if g.due { // it has to wait for one that is on its way, which wakes the watchdog
				g.next = now + lookOften/20
			}
			r.next = min(r.next, g.next)
			continue
		}
		if w.boardLocked(now, g) {
			r.next = min(r.next, g.next)
			r.flights = append(r.flights, g)
		}
	}
	return r
}

// classLocked returns with whom the hold is renewed; false if nothing is to be sent now.
func (h *Hold) classLocked(now time.Duration) (class, bool) {
	if h.flight != nil && now >= h.flight.until { // the call does not come back
		sent := h.flight.sent
		h.flight = nil
		h.failedLocked(now, sent, context.DeadlineExceeded, false)
	}
	c := class{length: bits.Len64(uint64(h.c.lease / time.Millisecond))}
	if h.failures > 0 {
		c.left = 1 + bits.Len64(uint64(max(h.deadline-now, 0)/time.Millisecond))
		c.lot = h.lot
	}
	if h.alone {
		c.alone = h
	}
	ready := now >= h.earliest && h.flight == nil && !h.ended && h.lost == nil && !h.c.unrenewed && !h.stalledLocked(now)
	return c, ready
}

// nextLocked is when the watchdog has to look at the hold at the latest.
func (h *Hold) nextLocked(now time.Duration) time.Duration {
	switch {
	case h.flight != nil:
		return min(h.deadline, h.flight.until)
	case h.ended || h.lost != nil || h.c.unrenewed || h.due <= now && h.stalledLocked(now): // Progress wakes the watchdog
		return h.deadline
	}
	return min(h.deadline, h.due)
}

// boardLocked notes that the renewals are on their way. A hold that was given back or lost since it
// was picked stays behind: nobody waits for a renewal that was not noted, and it would come
// after the release. It says false if none is left.
func (w *watchdog) boardLocked(now time.Duration, g *renewals) bool {
	until := now + maxLease
	for _, h := range g.holds {
		h.mu.Lock()
		until = min(until, now+patience(h.c.lease), h.deadline)
		h.mu.Unlock()
	}
	f := &flight{trip: trip{make(chan struct{})}, sent: now, until: until}
	f.needed.Store(int64(len(g.holds)))
	f.ctx, f.cancel = context.WithTimeout(context.Background(), until-now) // until all the bodies have ended, whatever is shut down
	g.flight, g.next = f, until
	g.holds = slices.DeleteFunc(g.holds, func(h *Hold) bool { return !h.board(f) })
	if len(g.holds) > 0 && g.class.alone != nil {
		w.lonely++
	}
	return len(g.holds) > 0
}

// board notes that the hold is renewed by the call, unless it needs no renewal any more.
func (h *Hold) board(f *flight) bool {
	h.mu.Lock()
	live := !h.ended && h.lost == nil
	if live {
		h.flight = f
	}
	h.mu.Unlock()
	if !live {
		f.leave()
	}
	return live
}

// start makes the call in a task.
func (w *watchdog) start(g *renewals) {
	async.Start(context.Background(), func(context.Context) error {
		defer w.landed(g)
		w.renew(g)
		return nil
	}, async.Name("locks: renewal"))
}

// landed is called when the call has come back, or has panicked.
func (w *watchdog) landed(g *renewals) {
	now := w.m.clock.Now()
	for _, h := range g.holds {
		h.mu.Lock()
		if h.flight == g.flight { // nothing was noted: the call has panicked
			h.flight = nil
			h.failedLocked(now, now, errPanicked, false)
		}
		h.mu.Unlock()
	}
	close(g.flight.done)
	g.flight.cancel()
	if g.class.alone != nil {
		w.mu.Lock()
		w.lonely--
		w.mu.Unlock()
	}
	w.wake(now)
}

// renew makes the call and notes what it has brought.
func (w *watchdog) renew(g *renewals) {
	sent := w.m.clock.Now()
	list := make([]Renewal, len(g.holds))
	for i, h := range g.holds {
		list[i] = h.renewal(h.c.lease)
	}
	results, err := w.m.store.Renew(g.flight.ctx, list)
	if err == nil {
		err = complete(len(results), len(list))
	}
	if err != nil {
		w.m.tell(Event{Kind: EventRenewFailed, Err: Unavailable(err), Count: len(list), Took: w.m.clock.Soon() - sent})
	} else {
		w.m.tell(Event{Kind: EventRenewed, Count: len(list), Took: w.m.clock.Soon() - sent})
	}
	a := answer{sent: sent, verdict: Skipped, err: err, jitter: rand.Float64()}
	for i, h := range g.holds {
		if a.lease = h.c.lease; err == nil {
			a.verdict = results[i].Verdict
		}
		h.renewed(g.flight, a)
		if err == nil && a.verdict == Extended {
			h.told(list[i].Data)
		}
	}
}
