package locks

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/lease"
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

	lease *lease.Lease
	run   *run

	doneOnce sync.Once
	done     context.Context // that of Done, made when it is first asked for

	extends atomic.Int32              // calls of Extend that go on
	taken   atomic.Pointer[LostError] // what the store has said at the release; nil: nothing

	mu      sync.Mutex
	data    *string // for the next renewal, or the release
	granted bool    // the observers were told of the grant: a loss is told after that

	lossTold, endTold atomic.Bool

	released chan struct{} // made by the first Release, closed when it has ended
	result   error         // of Release; written before released is closed

	scoped bool // the call that has the body gives it back
}

// newHold returns the hold that was granted with g, as an answer to a request that was
// sent at the time sent. It returns an error if that is too long ago.
func newHold(m *Manager, name Name, c *call, g *Grant, sent time.Duration) (*Hold, error) {
	h := &Hold{m: m, name: name, c: c, id: g.ID, token: g.Fence, slot: g.Slot, version: g.Version, since: sent, run: c.run}
	if h.run == nil {
		h.run = newRun(sent)
	}
	options := []lease.LeaseOption{lease.CauseOf(h.cause), lease.OnLoss(h.tellLost)}
	if c.unrenewed {
		options = append(options, lease.Fixed())
	}
	l, err := m.keeper.Keep(h, lease.Term{Granted: sent, Length: c.lease}, options...)
	if err != nil {
		return nil, err
	}
	h.lease = l
	m.held(1)
	return h, nil
}

// cause says how a lease has ended, in words of this package.
func (h *Hold) cause(err error) error {
	e := err.(*lease.Error)
	lost := &LostError{Key: h.name.Key, Token: h.token, Reason: LostExpired}
	switch {
	case e.Reason == lease.ErrEnded:
		return ErrReleased
	case errors.Is(e.Err, errRevoked):
		lost.Reason = LostRevoked
	case e.Reason == lease.ErrLost:
		lost.Reason = LostStolen
	case h.stalled(h.m.clock.Now()), errors.Is(e.Err, errStalled):
		lost.Reason = LostStalled
	case e.Tries > 0:
		lost.Reason, lost.Err = LostUnreachable, e.Err
	}
	return lost
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
func (h *Hold) Err() error {
	if lost := h.taken.Load(); lost != nil {
		return lost
	}
	return h.lease.Err()
}

// loss returns how the lock was lost; nil: it was not, before it was given back.
func (h *Hold) loss() *LostError {
	lost, _ := h.Err().(*LostError)
	return lost
}

// Remaining returns for how long this process holds the lock if it is not renewed; 0 if
// it does not hold it.
func (h *Hold) Remaining() time.Duration { return h.lease.Remaining() }

// Deadline returns until when this process holds the lock if it is not renewed, by the
// clock of this process.
func (h *Hold) Deadline() time.Time { return time.Now().Add(h.Remaining()) }

// Done returns a channel that is closed when the lock is lost or given back. [Hold.Err]
// tells which.
func (h *Hold) Done() <-chan struct{} {
	h.doneOnce.Do(func() { h.done, _ = h.lease.Context(context.Background()) })
	return h.done.Done()
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
	h.data = &s
	h.mu.Unlock()
	return h.Err() // nil: the release, which reads the text after the end, is still to come
}

// tellGranted tells the observers of the grant, and of the loss if there was one meanwhile.
func (h *Hold) tellGranted(took time.Duration) {
	h.m.tell(Event{Kind: EventGranted, Key: h.name.Key, Token: h.token, Took: took})
	h.mu.Lock()
	h.granted = true
	h.mu.Unlock()
	h.tellLost(h.Err())
}

// tellLost tells the observers of a loss, once, if err is one and they know of the grant. The
// keeper may call it before newHold has set the lease.
func (h *Hold) tellLost(err error) {
	lost, is := err.(*LostError)
	h.mu.Lock()
	granted := h.granted
	h.mu.Unlock()
	if is && granted && h.lossTold.CompareAndSwap(false, true) {
		defer h.tellEnded()
		h.m.tell(Event{Kind: EventLost, Key: h.name.Key, Token: h.token, Err: lost})
	}
}

// tellEnded tells the observers that the lock is lost or needed no more, once.
func (h *Hold) tellEnded() {
	if h.endTold.CompareAndSwap(false, true) {
		h.m.held(-1)
		h.m.tell(Event{Kind: EventEnded, Key: h.name.Key, Token: h.token})
	}
}
