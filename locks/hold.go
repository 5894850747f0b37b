package locks

import (
	"math/rand/v2"
	"sync"
	"time"
)

// A Hold is a lock that this process holds: what [Manager.Acquire] returns and [From]
// finds. It is renewed until it is given back. Any number of goroutines may use one.
type Hold struct {
	m    *Manager
	name Name
	c    *call
	id   string

	token   int64
	slot    int
	version string
	since   time.Duration // when it was asked for

	mu sync.Mutex
	// deadline is when this process stops to believe that it holds the lock. It never
	// gets earlier. It is counted from before the request was sent, so it comes before the
	// end of the lease in the store.
	deadline time.Duration
	over     time.Duration // when the lease ends in the store at the earliest
	earliest time.Duration // it may be renewed from then on
	due      time.Duration // it is to be renewed then
	flight   *flight       // the renewal on its way, also one of Extend; nil: none
	failures int           // renewals in a row that did not succeed
	lot      int           // with whom it is renewed after a failure: random, another each time
	alone    bool          // the next renewal takes no others along
	err      error         // what the last renewal that did not succeed was told
	pace     *pace         // one for each call; set again only before its body begins
	data     *string       // for the next renewal, or the release
	ended    bool          // it is needed no more: no renewal is sent from now on
	lost     *LostError    // set once; after ended only by what the store answers to the release
	granted  bool          // the observers were told of the grant: a loss is told after that
	done     chan struct{} // closed when it is lost or given back; nil: nobody has asked
	bodies   map[*body]struct{}

	released chan struct{} // made by the first Release, closed when it has ended
	result   error         // of Release; written before released is closed

	scoped  bool       // the call that has the body gives it back
	overran *sync.Once // one for each call: it is told once, also if the bodies of reentrant calls run on, too
}

// newHold returns the hold that was granted with g, as an answer to a request that was
// sent at the time sent.
func newHold(m *Manager, name Name, c *call, g *Grant, sent time.Duration) *Hold {
	h := &Hold{m: m, name: name, c: c, id: g.ID, token: g.Fence, slot: g.Slot, version: g.Version, since: sent, pace: newPace(sent), overran: new(sync.Once)}
	h.lastsLocked(sent, c.lease, rand.Float64())
	return h
}

// lastsLocked notes that the store has given the lease d, counted from the time sent or
// later.
func (h *Hold) lastsLocked(sent, d time.Duration, jitter float64) {
	h.deadline = max(h.deadline, sent+trusted(d))
	h.over = max(h.over, sent+d)
	earliest, due := nextRenewal(min(d, h.c.lease), jitter)
	h.earliest, h.due = sent+earliest, sent+due
	h.failures, h.alone, h.err = 0, false, nil
}

// Key returns the key of the lock.
func (h *Hold) Key() string { return h.name.Key }

// Tenant returns whose the lock is.
func (h *Hold) Tenant() string { return h.name.Tenant }

// Token returns the fencing token: it is greater than those of all who held the lock
// before, in any process. Give it to what you write to, and have that refuse one that is
// less than the greatest it has seen: see package fence. It fits into a float64 and into
// JSON.
func (h *Hold) Token() int64 { return h.token }

// Version names the lease to other processes: [Manager.Heartbeat] and
// [Manager.ReleaseVersion] take it.
func (h *Hold) Version() string { return h.version }

// Slot returns a number from 0 on that no other holder of the lock has at this time. It is 0 for a
// mutex.
func (h *Hold) Slot() int { return h.slot }

// Lease returns how long the lease is after each renewal.
func (h *Hold) Lease() time.Duration { return h.c.lease }

// FenceQueries returns the statements by which a transaction of the user's own can check
// this lease, in the database that the locks are kept in; false if the store has none. They
// are for [github.com/ambit-go/ambit/locks/fence.Same].
func (h *Hold) FenceQueries() (lock, left Query, ok bool) {
	f, ok := h.m.store.(Fencer)
	if ok {
		lock, left = f.FenceQueries(h.name, h.id)
	}
	return lock, left, ok
}

// Err returns nil while this process holds the lock. It is a look at the clock, not a
// question to the store, and costs less than a microsecond. Call it before each write to
// something else: after the process was stopped and goes on, it is Err that knows first.
//
// It returns a [*LostError] if the lock was lost, [ErrReleased] if it was given back.
func (h *Hold) Err() error { return h.look(h.m.clock.Now()) }

func (h *Hold) look(now time.Duration) error {
	h.mu.Lock()
	lost, ended := h.lost, h.ended
	late := now >= h.deadline
	h.mu.Unlock()
	switch {
	case lost != nil:
		return lost
	case ended:
		return ErrReleased
	case late:
		h.lose("", nil)
		return h.look(now)
	}
	return nil
}

// Remaining returns for how long this process holds the lock if it is not renewed; 0 if
// it does not hold it.
func (h *Hold) Remaining() time.Duration {
	now := h.m.clock.Now()
	if h.look(now) != nil {
		return 0
	}
	return h.remaining(now)
}

func (h *Hold) remaining(now time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline - now
}

// Deadline returns until when this process holds the lock if it is not renewed, by the
// clock of this process.
func (h *Hold) Deadline() time.Time { return time.Now().Add(h.Remaining()) }

// Done returns a channel that is closed when the lock is lost or given back. [Hold.Err]
// tells which.
func (h *Hold) Done() <-chan struct{} {
	_ = h.Err()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done == nil {
		h.done = make(chan struct{})
		if h.lost != nil || h.ended {
			close(h.done)
		}
	}
	return h.done
}

// Progress says that the body gets on, see [RequireProgress]. It counts for all locks that one
// call of [Manager.WithAll] has taken.
func (h *Hold) Progress() {
	now := h.m.clock.Now()
	h.mu.Lock()
	waited := h.stalledLocked(now)
	h.pace.say(now)
	h.mu.Unlock()
	if waited { // its renewal may be due since long
		h.m.dog.wake(now)
	}
}

// stalledLocked says whether the body had to say that it gets on, and has not.
func (h *Hold) stalledLocked(now time.Duration) bool {
	return h.c.progress > 0 && h.pace.silent(now) > h.c.progress
}

// SetData gives the lock another text for others to see. It is told to the store with
// the next renewal, or with the release. At most 64 KiB.
func (h *Hold) SetData(s string) error {
	if err := checkData(s); err != nil {
		return err
	}
	if err := h.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch { // since that look: nobody would tell it to the store any more
	case h.lost != nil:
		return h.lost
	case h.ended:
		return ErrReleased
	}
	h.data = &s
	return nil
}

// lose notes that the lock is lost, and cancels the bodies that need it, before it
// returns. reason is empty if the time has run out. The first of several losses counts.
func (h *Hold) lose(reason LossReason, err error) {
	h.mu.Lock()
	if h.lost != nil || h.ended {
		h.mu.Unlock()
		return
	}
	if reason == "" {
		switch {
		case h.stalledLocked(h.m.clock.Soon()):
			reason = LostStalled
		case h.failures > 0 || h.flight != nil:
			reason, err = LostUnreachable, h.err
		default:
			reason = LostExpired
		}
	}
	lost := &LostError{Key: h.name.Key, Token: h.token, Reason: reason, Err: err}
	h.lost = lost
	left := h.over - h.m.clock.Soon()
	if reason == LostStolen {
		left = 0
	}
	flight := h.flight
	h.flight = nil
	bodies, granted := h.closeLocked(), h.granted
	h.mu.Unlock()
	if flight != nil {
		flight.leave()
	}
	for _, b := range bodies {
		b.cancel(lost)
		b.overruns(h, left, lost)
	}
	h.m.dog.remove(h)
	if granted {
		h.tellLost(lost)
	}
}

// tellGranted tells the observers of the grant, and of the loss if there was one meanwhile.
func (h *Hold) tellGranted(took time.Duration) {
	h.m.tell(Event{Kind: EventGranted, Key: h.name.Key, Token: h.token, Took: took})
	h.mu.Lock()
	h.granted = true
	lost := h.lost
	h.mu.Unlock()
	if lost != nil {
		h.tellLost(lost)
	}
}

func (h *Hold) tellLost(lost *LostError) {
	h.m.tell(Event{Kind: EventLost, Key: h.name.Key, Token: h.token, Err: lost})
	h.m.tell(Event{Kind: EventEnded, Key: h.name.Key, Token: h.token})
}

// closeLocked ends what lasts as long as the hold.
func (h *Hold) closeLocked() []*body {
	if h.done != nil {
		close(h.done)
	}
	bodies := make([]*body, 0, len(h.bodies))
	for b := range h.bodies {
		bodies = append(bodies, b)
	}
	return bodies
}
