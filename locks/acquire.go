package locks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
	"github.com/ambit-go/ambit/locks/internal/pause"
)

// callTime bounds one question to the store for a lock.
const callTime = 5 * time.Second

// graceTime is what a step has to come back when its caller does not want it any more: of
// one that is cut short nobody knows whether it was done.
const graceTime = time.Second

// outageTime is for how long at most a call that waits puts up with a store that does not
// answer.
const outageTime = 10 * time.Second

// briefTime is how long a record stays with Retention(0) whose last holder, or the last that
// waited, has died.
const briefTime = time.Minute

// Acquire takes the lock of a key until it is given back with [Hold.Release], for work
// that is not one function; [Manager.With] is the better choice where it can be used. It
// is a mutex, unless an option says [Permit], [Permits], [Read] or [Write]. It waits, and
// its errors are, as With's.
//
// The lock belongs to no context: the end of ctx after Acquire has returned does not
// matter to it. If ctx ends before, the lock is given back, and the request is withdrawn;
// Acquire returns after that, or after 2 s with an error that matches [ErrUnknownOutcome].
func (m *Manager) Acquire(ctx context.Context, key string, options ...LockOption) (*Hold, error) {
	c, err := m.call(key, options)
	if err != nil {
		return nil, err
	}
	name := m.name(key)
	if h, err := m.around(ctx, name, c); err != nil {
		return nil, err
	} else if h != nil {
		return nil, &ValidationError{"Reentrant", "the caller holds the lock already: use From to find it"}
	}
	return m.acquire(ctx, name, c)
}

// acquire asks for a lock: once by itself, and then, if it is not free, by the waitlist of
// the key.
func (m *Manager) acquire(ctx context.Context, name Name, c *call) (*Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, notGranted(ctx, name, RefusedCancelled)
	}
	w := newWaiter(m, name, c)
	joined, err := m.joinWaitlist(w, false)
	if err != nil {
		return nil, err
	}
	if !joined && !w.tryAlone(ctx) {
		if joined, err = m.joinWaitlist(w, true); err != nil {
			w.err = err
		}
	}
	if joined {
		m.tell(Event{Kind: EventWaiting, Key: name.Key})
		w.wait(ctx)
	}
	return w.outcome(ctx)
}

// A waiter is one call for a lock that has not returned.
type waiter struct {
	m       *Manager
	name    Name
	c       *call
	request Request
	started time.Duration

	ready   chan struct{}           // gets a value when it is decided; holds one
	future  *async.Future[struct{}] // the same, for a wait that lends a slot; nil before it has joined a waitlist
	promise *async.Promise[struct{}]

	// The rest is guarded by m.mu once the waiter has joined a waitlist.
	hold    *Hold
	err     error
	place   int
	holder  string
	known   bool          // the store has answered: the request is in its queue
	asked   bool          // the store was asked: the request may be in its queue
	due     bool          // the waitlist is to ask for it at once
	smaller int           // the size of the semaphore, if the call has named a greater one
	since   time.Duration // since when the store has not answered; 0: it has
	gone    bool          // the caller has been told to stop: it withdraws the request
	late    bool          // the caller has returned, and could not wait for the question on its way
	attempt *attempt      // on its way; nil: none
	failure error         // what the store said last
	stale   string        // the ID of a grant that came too late, to be given back
}

func newWaiter(m *Manager, name Name, c *call) *waiter {
	w := &waiter{m: m, name: name, c: c, started: m.clock.Now(), ready: make(chan struct{}, 1)}
	w.request = Request{
		Owner: m.set.owner, Kind: c.kind, Shared: c.shared, Size: c.size, Permits: c.permits, Lease: c.lease, Wait: c.wait != 0,
		Barging: c.barging, LockDelay: c.delay, Data: c.data, OnlyIfExists: c.exists, DeleteOnRelease: c.deletes,
		Brief: m.set.retain == 0, Retention: cmp.Or(m.set.retain, briefTime), Resize: c.resize, Strict: c.strict,
	}
	w.anew()
	return w
}

// anew gives the request another ID: what was given back is never asked for again, for a
// copy of that release may be on its way.
func (w *waiter) anew() {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	w.request.ID, w.request.Version = hex.EncodeToString(b[:16]), uuid([16]byte(b[16:]))
	w.known, w.asked = false, false
}

func newVersion() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return uuid(b)
}

// uuid returns random bits as a UUID of version 4, as db-locks names versions.
func uuid(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	text := make([]byte, 0, 36)
	for i, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return string(text)
}

// tries is how often a call that does not wait asks when answers come too late.
const tries = 3

// tryAlone asks without a waitlist.
func (w *waiter) tryAlone(ctx context.Context) bool {
	defer w.m.leaveAlone(w)
	return w.tryOnce(ctx)
}

// tryOnce asks the store, and says whether that has decided it.
func (w *waiter) tryOnce(ctx context.Context) bool {
	for range tries {
		w.asked = true
		sent, turn, err := w.m.ask(ctx, w.name, []*waiter{w}, w.patience())
		w.answered(sent, turn, 0, err)
		if w.stale != "" {
			w.giveBackStale(ctx)
		}
		if w.hold != nil || w.err != nil {
			return true
		}
		if w.c.wait != 0 {
			return false
		}
		if w.since != 0 {
			w.err = Unavailable(w.failure)
			return true
		}
		if w.known {
			w.err = notGranted(ctx, w.name, RefusedNoWait)
			w.known, w.asked = false, false // it has left nothing behind
			return true
		}
	}
	w.err = Unavailable(errTooLate)
	return true
}

// giveBackStale gives back what was granted too late. A grant that cannot be given back ends with
// its lease.
func (w *waiter) giveBackStale(ctx context.Context) {
	ctx, cancel := bounded(ctx, withdrawTime)
	defer cancel()
	_, err := w.m.release(ctx, w.name, Ref{ID: w.stale}, nil, withdrawTime/2)
	w.stale = ""
	w.m.tell(Event{Kind: EventGivenBack, Key: w.name.Key, Err: err})
}

// patience is how long the answer to one question is worth waiting for.
func (w *waiter) patience() time.Duration {
	most := min(callTime, lease.Term{Length: w.c.lease}.Believed())
	if w.c.wait > 0 && w.c.wait < most { // it may be all the time there is
		most = min(most, w.c.wait+graceTime)
	}
	return most
}

// ask takes one step in the store, for most at most, and returns when it was asked for. If ctx ends
// meanwhile it has a little more time.
func (m *Manager) ask(ctx context.Context, name Name, waiters []*waiter, most time.Duration) (sent time.Duration, turn Turn, err error) {
	requests := make([]Request, len(waiters))
	for i, w := range waiters {
		requests[i] = w.request
	}
	call, cancel := bounded(ctx, most)
	defer cancel()
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() {
			if pause.For(call, graceTime) == nil {
				cancel()
			}
		})()
	}
	sent = m.clock.Now()
	turn, err = m.store.Acquire(call, name, requests)
	if err == nil {
		err = complete(len(turn.Answers), len(requests))
	}
	return sent, turn, err
}

// answered notes the answer, the i-th of a turn, to a question that was sent at the time
// sent.
func (w *waiter) answered(sent time.Duration, turn Turn, i int, err error) {
	if w.gone { // the caller does what is to be done
		return
	}
	now := w.m.clock.Now()
	if err != nil {
		w.failure = err
		if w.since == 0 {
			w.since = sent
		}
		if !transient(err) {
			w.err = err
		} else if now-w.since >= min(w.c.lease, outageTime) {
			w.err = Unavailable(err)
		}
		return
	}
	w.since = 0
	w.request.Resize = false // it is done: a size that somebody else gives from now on is not undone
	a := &turn.Answers[i]
	if w.smaller = 0; a.Err == nil && w.c.size > turn.Size {
		w.smaller = turn.Size
	}
	switch {
	case a.Err != nil:
		w.err = a.Err
		w.known, w.asked = false, false // the store has forgotten it
	case !a.Granted:
		w.place, w.holder, w.known = a.Place, a.Holder, true
	case a.Grant.Revoked:
		w.refuse()
	default:
		if w.hold, err = newHold(w.m, w.name, w.c, &a.Grant, sent); err != nil { // it came too late
			w.refuse()
		}
	}
}

// refuse has a grant be given back that is of no use, and another asked for.
func (w *waiter) refuse() {
	w.stale = w.request.ID
	w.anew()
}

// outcome returns what a call that is decided returns. A request that may be in the queue
// of the store, or may have been granted, is withdrawn first.
func (w *waiter) outcome(ctx context.Context) (*Hold, error) {
	if w.smaller > 0 {
		w.m.tellSmaller(w.name, w.smaller)
	}
	if h := w.hold; h != nil {
		decided := false
		defer func() {
			if !decided { // an observer has panicked: nobody gets the hold, so it is not renewed
				h.abandon()
			}
		}()
		h.tellGranted(w.m.clock.Now() - w.started)
		late := ctx.Err() != nil
		if decided = true; !late {
			return h, nil
		}
		// It came too late.
		w.err = notGranted(ctx, w.name, RefusedCancelled)
		if h.end() == nil {
			if err := h.giveBack(ctx); err != nil {
				w.err = both(w.err, err)
			}
		}
	}
	if busy, ok := w.err.(*NotGrantedError); ok {
		busy.Place, busy.Holder = w.place, w.holder
	}
	if w.hold == nil && w.asked {
		w.err = both(w.err, w.withdraw(ctx))
	}
	w.m.tell(Event{Kind: EventNotGranted, Key: w.name.Key, Err: w.err, Took: w.m.clock.Now() - w.started})
	return nil, w.err
}

// withdraw has the store forget the request, or gives back what it was granted. A
// question on its way is waited for first, or it might be entered again.
func (w *waiter) withdraw(ctx context.Context) error {
	ctx, cancel := bounded(ctx, withdrawTime)
	defer cancel()
	w.m.mu.Lock()
	attempt := w.attempt
	w.m.mu.Unlock()
	if attempt != nil {
		attempt.wait(ctx, withdrawTime/2)
		w.m.mu.Lock()
		w.late = w.attempt != nil // then the waitlist withdraws it when it has come back
		w.m.mu.Unlock()
		if w.late {
			return both(errSilent, ErrUnknownOutcome)
		}
	}
	_, err := w.m.release(ctx, w.name, Ref{ID: w.request.ID}, nil, withdrawTime/2)
	return err
}

// notGranted returns the error of a call that was not granted the lock. If ctx is done
// that is the reason.
func notGranted(ctx context.Context, name Name, why Refusal) *NotGrantedError {
	e := &NotGrantedError{Key: name.Key, Reason: why}
	if err := ctx.Err(); err != nil {
		e.ctxErr, e.Err, e.Reason = err, context.Cause(ctx), RefusedCancelled
		if err == context.DeadlineExceeded {
			e.Reason = RefusedTimedOut
		}
	}
	return e
}
