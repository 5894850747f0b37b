package locks

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

const (
	// refreshTime is how often a waitlist asks for all of its waiters: a request is forgotten
	// after three of them, see WaiterLife.
	refreshTime = time.Second
	// blindTime is how often it asks for the first of them in a store that gives no hints.
	blindTime = 100 * time.Millisecond
	// afterExpiry is how long after the end of a lease it is asked for.
	afterExpiry = 5 * time.Millisecond
	// mostPatient is how long a hint has to wait if many before it have changed nothing.
	mostPatient = 50 * time.Millisecond
	// fewest and most are for how many waiters it asks when a hint comes.
	fewest, most = 8, 64
)

// A waitlist waits for one lock for all the callers of a manager. Each of them has its own
// request, and so its own place, in the queue of the store. Its task registers for hints,
// then asks, then sleeps: what is released after it has asked is hinted to it, and what
// was released before was seen.
type waitlist struct {
	m    *Manager
	name Name
	wake chan struct{} // gets a value when there is a new waiter, or none; holds one

	// waiters are in the order of their places, as far as known. Guarded by m.mu. A waitlist
	// without waiters is in no map: its task ends.
	waiters []*waiter

	// The rest belongs to the task.
	refresh time.Duration // when to ask for all of them
	blind   time.Duration // when to ask for the first of them, in a store without hints
	expiry  time.Duration // when a lease may have run out; 0: not of interest
	retry   time.Duration // when to ask again after a failure; 0: there was none
	pause   time.Duration // between tries while the store does not answer
	hint    time.Duration // when to follow a hint that has come; 0: none has
	patient time.Duration // hints that come before are followed then
	vain    int           // how many hints in a row have brought nobody forward
	place   int           // the first place when it was asked last
	size    int
	waited  bool // somebody was not granted the lock at once
}

// joinWaitlist has the waiter join the waitlist of its key. If there is none it makes one, if it
// must, another call is asking by itself, or somebody waited a moment ago, and says false
// otherwise: then the caller asks by itself, and calls leaveAlone after that. One that does
// not want to wait joins none.
func (m *Manager) joinWaitlist(w *waiter, must bool) (bool, error) {
	m.mu.Lock()
	l := m.waitlists[w.name]
	_, another := m.alone[w.name]
	made := l == nil && (must || another || m.listeners[w.name] != nil)
	switch {
	case m.closed:
		m.mu.Unlock()
		return false, ErrClosed
	case w.c.wait == 0:
		m.mu.Unlock()
		return false, nil
	case l == nil && !made:
		m.alone[w.name] = struct{}{}
		m.mu.Unlock()
		return false, nil
	case made:
		l = &waitlist{m: m, name: w.name, wake: make(chan struct{}, 1)}
		m.waitlists[w.name] = l
	}
	w.future, w.promise = async.NewPromise[struct{}](context.Background())
	l.addLocked(w)
	m.mu.Unlock()
	if made {
		async.Start(context.Background(), l.run, async.Name("locks: waits for a lock"))
	}
	return true, nil
}

// leaveAlone is called when a call has asked by itself.
func (m *Manager) leaveAlone(w *waiter) {
	if w.c.wait == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.alone, w.name)
}

func (l *waitlist) addLocked(w *waiter) {
	w.due = true // what was hinted before it was here is not hinted again
	l.waiters = append(l.waiters, w)
	signal(l.wake)
}

// signal gives a value to a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// signal says that the waiter is decided.
func (w *waiter) signal() {
	signal(w.ready)
	if w.promise != nil {
		w.promise.Resolve(struct{}{})
	}
}

// wait waits until the waitlist has decided, or the time to wait is over. A task lends its slot
// of a Limit meanwhile: those who hold the lock may need it.
func (w *waiter) wait(ctx context.Context) {
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if w.c.wait > 0 {
		waiting, cancel = context.WithTimeout(ctx, w.c.wait-(w.m.clock.Now()-w.started))
	}
	defer cancel()
	_, _ = w.future.Wait(waiting)
	select { // the promise may have been settled by others, as by async.Shutdown
	case <-w.ready:
	case <-waiting.Done():
		why := RefusedTimedOut
		if ctx.Err() != nil {
			why = RefusedCancelled
		}
		w.leave(ctx, why)
	}
	w.promise.Resolve(struct{}{}) // nothing is left of it at the root
}

// leave takes the waiter out of its waitlist, unless it was decided at this moment.
func (w *waiter) leave(ctx context.Context, why Refusal) {
	refused := notGranted(ctx, w.name, why) // it asks ctx, which may be the user's own
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if w.hold != nil || w.err != nil {
		return
	}
	w.gone, w.err = true, refused
	if w.since != 0 && refused.ctxErr == nil { // nobody knows whether the lock was free
		w.err = Unavailable(w.failure)
	}
	if l := w.m.waitlists[w.name]; l != nil {
		l.waiters = slices.DeleteFunc(l.waiters, func(other *waiter) bool { return other == w })
		if len(l.waiters) == 0 {
			signal(l.wake)
		}
	}
}

// failLocked has all waiters fail.
func (l *waitlist) failLocked(err error) {
	for _, w := range l.waiters {
		w.gone, w.err = true, err
		w.signal()
	}
	l.waiters = nil
	signal(l.wake)
}

// run is the task of the waitlist. It ends when nobody waits.
func (l *waitlist) run(context.Context) error {
	defer l.abandon()
	e, over := l.m.listen(l.name), false
	defer func() { l.m.unlisten(e, over && l.waited) }()
	for {
		batch, attempt, left := l.pick()
		if over = !left; over {
			return nil
		}
		if len(batch) == 0 || !l.ask(batch, attempt) {
			l.sleep(e)
		}
	}
}

// abandon is called when the task ends, also by a panic of the store: then nobody would
// ask for those that wait.
func (l *waitlist) abandon() {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.waitlists[l.name] == l {
		delete(l.m.waitlists, l.name)
		l.failLocked(Unavailable(errPanicked))
	}
}

// pick returns for whom to ask now, and the attempt that they are part of from now on; false if
// nobody waits. Then the waitlist has been forgotten, and a new waiter makes another.
//
// A waiter that leaves after this knows that the store may be asked for it, and withdraws
// its request when that has come back.
func (l *waitlist) pick() (batch []*waiter, f *attempt, left bool) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if len(l.waiters) == 0 {
		delete(l.m.waitlists, l.name)
		return nil, nil, false
	}
	now := l.m.clock.Now()
	due := func(at time.Duration) bool { return at != 0 && now >= at }
	first := due(l.hint) || due(l.expiry) || due(l.blind)
	switch {
	case l.retry > now: // the store is not asked more often while it does not answer
	case l.retry != 0 || now >= l.refresh:
		batch = slices.Clone(l.waiters)
	default:
		n := min(max(l.size, fewest), most)
		for i, w := range l.waiters {
			if w.due || first && (i < n || w.c.barging) {
				batch = append(batch, w)
			}
		}
	}
	if due(l.hint) && len(batch) > 0 {
		l.hint, l.vain = 0, l.vain+1 // unless the answer says otherwise
	}
	f = &attempt{make(chan struct{})}
	for _, w := range batch {
		w.attempt, w.asked, w.due = f, true, false
	}
	return batch, f, true
}

// An attempt is a call of the store on its way that callers may have to wait for.
type attempt struct {
	done chan struct{} // closed when it has come back
}

// wait waits until it has come back, for d at most.
func (a *attempt) wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-a.done:
	case <-ctx.Done():
	}
}

// ask asks for a batch. It says whether to look again at once: all of those that were asked
// for were granted, or nobody waits any more.
func (l *waitlist) ask(batch []*waiter, f *attempt) (again bool) {
	sent, turn, err := time.Duration(0), Turn{}, errPanicked
	defer func() { // also if the store panics
		l.m.mu.Lock()
		granted := l.answeredLocked(batch, sent, turn, err)
		if again = granted == len(batch) || len(l.waiters) == 0; again {
			l.hint = l.m.clock.Now() // there may be room for more of them
		}
		l.m.mu.Unlock()
		close(f.done)
	}()
	sent, turn, err = l.m.ask(context.Background(), l.name, batch, callTime)
	return false // replaced
}

// answeredLocked notes the answers, and when to ask next. It returns how many were
// granted.
func (l *waitlist) answeredLocked(batch []*waiter, sent time.Duration, turn Turn, err error) (granted int) {
	now := l.m.clock.Now()
	for i, w := range batch {
		w.attempt = nil
		w.answered(sent, turn, i, err)
		if w.stale != "" {
			l.m.giveBackLater(l.name, w.stale)
			w.stale = ""
		}
		switch {
		case w.late: // nobody waits for the end of this question any more
			l.m.giveBackLater(l.name, w.request.ID)
		case w.gone:
		case w.hold != nil:
			granted++
			w.signal()
		case w.err != nil:
			w.signal()
		}
	}
	all := len(batch) >= len(l.waiters) // new ones may have come meanwhile: they are due
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter) bool { return w.hold != nil || w.err != nil })
	if err != nil {
		l.pause = min(max(2*l.pause, 50*time.Millisecond), refreshTime)
		l.retry = now + spread(l.pause)
		return granted
	}
	l.retry, l.pause, l.size = 0, 0, turn.Size
	l.waited = l.waited || granted < len(batch)
	slices.SortStableFunc(l.waiters, func(a, b *waiter) int { return cmp.Compare(a.order(), b.order()) })
	if all {
		l.refresh = now + refreshTime + time.Duration(rand.Int64N(int64(refreshTime/5)))
	}
	l.plan(now, turn, granted)
	return granted
}

// order is the place of a waiter, as far as known: new ones are last.
func (w *waiter) order() int {
	if !w.known {
		return math.MaxInt
	}
	return w.place
}

// plan decides when to ask for the first waiters if no hint comes. The end of a lease is
// waited for to the point, but only by those who may be granted it.
func (l *waitlist) plan(now time.Duration, turn Turn, granted int) {
	l.expiry, l.blind = 0, 0
	if len(l.waiters) == 0 {
		return
	}
	place := l.waiters[0].place
	if granted > 0 || place < l.place {
		l.vain = 0
	}
	l.place, l.patient = place, 0
	if l.vain > 1 {
		l.patient = now + min(time.Millisecond<<min(l.vain, 10), mostPatient)
	}
	if !turn.Next.IsZero() && place < max(turn.Size, 1) {
		l.expiry = now + max(turn.Next.Sub(turn.Now), 0) + afterExpiry
	}
	if !l.m.traits.Hints {
		l.blind = now + spread(blindTime+blindTime*time.Duration(place)/8)
	}
}

// spread returns d, a fifth of it more or less: so that not all processes ask at once.
func spread(d time.Duration) time.Duration {
	return d - d/5 + time.Duration(rand.Int64N(int64(2*d/5)+1))
}

// sleep waits until it is time to ask again.
//
// A hint is followed at once, unless those before have changed nothing: a store may give one
// after each question while the first in the queue is a process that has died.
func (l *waitlist) sleep(e *listener) {
	at := l.refresh
	for _, other := range []time.Duration{l.expiry, l.blind, l.hint} {
		if other != 0 {
			at = min(at, other)
		}
	}
	if l.retry != 0 {
		at = l.retry
	}
	now := l.m.clock.Now()
	t := time.NewTimer(at - now)
	defer t.Stop()
	select {
	case _, ok := <-e.hints:
		switch {
		case !ok:
			e.hints = nil // there are none any more
		case l.hint == 0:
			l.hint = max(l.m.clock.Now(), l.patient)
		}
	case <-l.wake:
	case <-t.C:
	}
}

// giveBackLater gives back, or withdraws, what nobody wants any more.
func (m *Manager) giveBackLater(name Name, id string) {
	async.Start(context.Background(), func(ctx context.Context) error {
		ctx, cancel := bounded(ctx, releaseTime)
		defer cancel()
		_, err := m.release(ctx, name, Ref{ID: id}, nil, withdrawTime)
		m.tell(Event{Kind: EventGivenBack, Key: name.Key, Err: err})
		return nil // what it left behind ends with its lease
	}, async.Name("locks: gives back what came too late"))
}
