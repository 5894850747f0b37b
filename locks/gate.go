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
	// refreshTime is how often a gate asks for all of its waiters: a request is forgotten
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

// A gate waits for one lock for all the callers of a manager. Each of them has its own
// request, and so its own place, in the queue of the store. Its task registers for hints,
// then asks, then sleeps: what is released after it has asked is hinted to it, and what
// was released before was seen.
type gate struct {
	m    *Manager
	name Name
	wake chan struct{} // gets a value when there is a new waiter, or none; holds one

	// waiters are in the order of their places, as far as known. Guarded by m.mu. A gate
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

// joinGate has the waiter join the gate of its key. If there is none it makes one, if it
// must, another call is asking by itself, or somebody waited a moment ago, and says false
// otherwise: then the caller asks by itself, and calls leaveAlone after that. One that does
// not want to wait joins none.
func (m *Manager) joinGate(w *waiter, must bool) (bool, error) {
	m.mu.Lock()
	g := m.gates[w.name]
	_, another := m.alone[w.name]
	made := g == nil && (must || another || m.ears[w.name] != nil)
	switch {
	case m.closed:
		m.mu.Unlock()
		return false, ErrClosed
	case w.c.wait == 0:
		m.mu.Unlock()
		return false, nil
	case g == nil && !made:
		m.alone[w.name] = struct{}{}
		m.mu.Unlock()
		return false, nil
	case made:
		g = &gate{m: m, name: w.name, wake: make(chan struct{}, 1)}
		m.gates[w.name] = g
	}
	w.future, w.promise = async.NewPromise[struct{}](context.Background())
	g.addLocked(w)
	m.mu.Unlock()
	if made {
		async.Start(context.Background(), g.run, async.Name("locks: waits for a lock"))
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

func (g *gate) addLocked(w *waiter) {
	w.due = true // what was hinted before it was here is not hinted again
	g.waiters = append(g.waiters, w)
	signal(g.wake)
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

// wait waits until the gate has decided, or the time to wait is over. A task lends its slot
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

// leave takes the waiter out of its gate, unless it was decided at this moment.
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
	if g := w.m.gates[w.name]; g != nil {
		g.waiters = slices.DeleteFunc(g.waiters, func(other *waiter) bool { return other == w })
		if len(g.waiters) == 0 {
			signal(g.wake)
		}
	}
}

// failLocked has all waiters fail.
func (g *gate) failLocked(err error) {
	for _, w := range g.waiters {
		w.gone, w.err = true, err
		w.signal()
	}
	g.waiters = nil
	signal(g.wake)
}

// run is the task of the gate. It ends when nobody waits.
func (g *gate) run(context.Context) error {
	defer g.abandon()
	e, over := g.m.listen(g.name), false
	defer func() { g.m.hush(e, over && g.waited) }()
	for {
		batch, trip, left := g.pick()
		if over = !left; over {
			return nil
		}
		if len(batch) == 0 || !g.ask(batch, trip) {
			g.sleep(e)
		}
	}
}

// abandon is called when the task ends, also by a panic of the store: then nobody would
// ask for those that wait.
func (g *gate) abandon() {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	if g.m.gates[g.name] == g {
		delete(g.m.gates, g.name)
		g.failLocked(Unavailable(errPanicked))
	}
}

// pick returns for whom to ask now, and the trip on which they are from now on; false if
// nobody waits. Then the gate has been forgotten, and a new waiter makes another.
//
// A waiter that leaves after this knows that the store may be asked for it, and withdraws
// its request when the trip is over.
func (g *gate) pick() (batch []*waiter, f *trip, left bool) {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	if len(g.waiters) == 0 {
		delete(g.m.gates, g.name)
		return nil, nil, false
	}
	now := g.m.clock.Now()
	due := func(at time.Duration) bool { return at != 0 && now >= at }
	first := due(g.hint) || due(g.expiry) || due(g.blind)
	switch {
	case g.retry > now: // the store is not asked more often while it does not answer
	case g.retry != 0 || now >= g.refresh:
		batch = slices.Clone(g.waiters)
	default:
		n := min(max(g.size, fewest), most)
		for i, w := range g.waiters {
			if w.due || first && (i < n || w.c.barging) {
				batch = append(batch, w)
			}
		}
	}
	if due(g.hint) && len(batch) > 0 {
		g.hint, g.vain = 0, g.vain+1 // unless the answer says otherwise
	}
	f = &trip{make(chan struct{})}
	for _, w := range batch {
		w.trip, w.asked, w.due = f, true, false
	}
	return batch, f, true
}

// ask asks for a batch. It says whether to look again at once: all of those that were asked
// for were granted, or nobody waits any more.
func (g *gate) ask(batch []*waiter, f *trip) (again bool) {
	sent, turn, err := time.Duration(0), Turn{}, errPanicked
	defer func() { // also if the store panics
		g.m.mu.Lock()
		granted := g.answeredLocked(batch, sent, turn, err)
		if again = granted == len(batch) || len(g.waiters) == 0; again {
			g.hint = g.m.clock.Now() // there may be room for more of them
		}
		g.m.mu.Unlock()
		close(f.done)
	}()
	sent, turn, err = g.m.ask(context.Background(), g.name, batch, callTime)
	return false // replaced
}

// answeredLocked notes the answers, and when to ask next. It returns how many were
// granted.
func (g *gate) answeredLocked(batch []*waiter, sent time.Duration, turn Turn, err error) (granted int) {
	now := g.m.clock.Now()
	for i, w := range batch {
		w.trip = nil
		w.answered(sent, turn, i, err)
		if w.stale != "" {
			g.m.giveBackLater(g.name, w.stale)
			w.stale = ""
		}
		switch {
		case w.late: // nobody waits for the end of this question any more
			g.m.giveBackLater(g.name, w.request.ID)
		case w.gone:
		case w.hold != nil:
			granted++
			w.signal()
		case w.err != nil:
			w.signal()
		}
	}
	all := len(batch) >= len(g.waiters) // new ones may have come meanwhile: they are due
	g.waiters = slices.DeleteFunc(g.waiters, func(w *waiter) bool { return w.hold != nil || w.err != nil })
	if err != nil {
		g.pause = min(max(2*g.pause, 50*time.Millisecond), refreshTime)
		g.retry = now + spread(g.pause)
		return granted
	}
	g.retry, g.pause, g.size = 0, 0, turn.Size
	g.waited = g.waited || granted < len(batch)
	slices.SortStableFunc(g.waiters, func(a, b *waiter) int { return cmp.Compare(a.order(), b.order()) })
	if all {
		g.refresh = now + refreshTime + time.Duration(rand.Int64N(int64(refreshTime/5)))
	}
	g.plan(now, turn, granted)
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
func (g *gate) plan(now time.Duration, turn Turn, granted int) {
	g.expiry, g.blind = 0, 0
	if len(g.waiters) == 0 {
		return
	}
	place := g.waiters[0].place
	if granted > 0 || place < g.place {
		g.vain = 0
	}
	g.place, g.patient = place, 0
	if g.vain > 1 {
		g.patient = now + min(time.Millisecond<<min(g.vain, 10), mostPatient)
	}
	if !turn.Next.IsZero() && place < max(turn.Size, 1) {
		g.expiry = now + max(turn.Next.Sub(turn.Now), 0) + afterExpiry
	}
	if !g.m.traits.Hints {
		g.blind = now + spread(blindTime+blindTime*time.Duration(place)/8)
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
func (g *gate) sleep(e *ear) {
	at := g.refresh
	for _, other := range []time.Duration{g.expiry, g.blind, g.hint} {
		if other != 0 {
			at = min(at, other)
		}
	}
	if g.retry != 0 {
		at = g.retry
	}
	now := g.m.clock.Now()
	t := time.NewTimer(at - now)
	defer t.Stop()
	select {
	case _, ok := <-e.hints:
		switch {
		case !ok:
			e.hints = nil // there are none any more
		case g.hint == 0:
			g.hint = max(g.m.clock.Now(), g.patient)
		}
	case <-g.wake:
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
