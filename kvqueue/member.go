package kvqueue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A member is what claims items in the name of one session: one task for all callers of the
// handle that wait. Its knowledge of the others comes from one watch.
type member struct {
	*session
	bell chan struct{} // of size 1: there is something to look at

	closing atomic.Bool   // the handle is closed: nothing more is to be claimed
	over    chan struct{} // closed when nothing of the member runs any more

	// crowded is when the requests of others were seen, or others spoilt a claim, last. For a
	// while after that nothing is claimed directly: it would be spoilt again.
	crowded   time.Time
	gathering gathering
	first     string    // the request of another that was the oldest when it was looked at last
	item      Key       // and what was the first item then, if that was seen
	since     time.Time // and since when both were so

	mu       sync.Mutex
	listed   bool             // requests is what stood at some time; before, nothing is known
	requests []standing       // of all members, the oldest first
	mine     string           // the key of our own; empty: none stands
	missing  time.Time        // since when it does not stand
	members  map[int64]Rev    // the sessions that claim and live, and since when they do
	held     map[Key]*holding // what was claimed, or is being claimed
	arrived  map[Rev][]ready  // what others have claimed for us, by transaction
	carried  carried
}

// A standing is a request that stands.
type standing struct {
	key     string
	rev     Rev
	session int64
	want    int
}

// A holding is a claim, so far as the watch goes: it is forgotten when the watch has shown
// the end of the claim, so that a claim which is shown late is not taken for a new one.
type holding struct {
	rev  Rev  // of the last claim that was handed over; 0: there was none
	busy bool // a transaction that claims it is on its way
	// seen is what the watch has shown of a later claim while one was on its way: if ours
	// comes to nothing, another has claimed the item for us.
	seen  *ready
	ended Rev // what the watch has shown of the end of a claim meanwhile
}

// serveWaiters makes sure that there is a member, and has it look.
func (q *Queue) serveWaiters(ctx context.Context) error {
	l, err := q.alive(ctx)
	if err != nil {
		return err
	}
	q.mu.Lock()
	m := l.member
	if m == nil {
		m = &member{session: l, bell: make(chan struct{}, 1), over: make(chan struct{}), held: map[Key]*holding{}, arrived: map[Rev][]ready{}}
		l.member, l.claimed = m, true
		if q.closed || q.group.Go(m.work, async.Name("kvqueue: claim items of "+q.name)) != nil {
			l.member, err = nil, ErrClosed
		}
	}
	q.mu.Unlock()
	m.wake()
	return err
}

// nudge has the member look, if there is one.
func (q *Queue) nudge() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.session != nil && q.session.member != nil {
		q.session.member.wake()
	}
}

func (m *member) wake() {
	select {
	case m.bell <- struct{}{}:
	default: // it is going to look anyhow
	}
}

// work claims until the session ends. A call that waits then is served by the next member.
func (m *member) work(ctx context.Context) error {
	defer close(m.over)
	err := async.Scope(ctx, func(ctx context.Context) error {
		async.Go(ctx, m.follow, async.Daemon())
		return m.claim(ctx)
	}, async.StopWith(m.lost))
	m.carryNoMore()
	if m.closing.Load() {
		m.giveUp(ctx)
	}
	m.q.succeed(m, err)
	return nil
}

// succeed has the waiters of a member that has ended begin again, under a new session as a rule, or
// answers them with ErrNoSpace if the store was full.
func (q *Queue) succeed(m *member, err error) {
	if !errors.Is(err, ErrNoSpace) {
		err = errAgain
	}
	q.mu.Lock()
	if m.session.member == m {
		m.session.member = nil
	}
	waiters := q.waiters
	q.waiters = nil
	q.mu.Unlock()
	for _, w := range waiters {
		w.fail(err)
	}
}

// claim looks again and again, whenever the bell has rung or a request has stood for long.
func (m *member) claim(ctx context.Context) error {
	asked := time.Now()
	if _, err := m.q.kv.Commit(ctx, []Guard{m.lives()}, []Write{{Key: m.q.lay.session("s", m.id), Value: []byte(m.q.set.owner)}}); err != nil {
		return m.rest(ctx, asked, fullOnly(err))
	}
	m.q.asked(claiming, nil)
	pause := async.Jitter(0.5, async.Backoff(10*time.Millisecond, time.Second))
	for failures := 0; !m.closing.Load(); {
		m.carry()
		asked = time.Now()
		again, err := m.step(ctx)
		err = fullOnly(err)
		if err != nil {
			m.carryNoMore()
		} else if again > 0 {
			m.settleCarried()
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			m.q.asked(claiming, err)
			if failures++; errors.Is(err, ErrNoSpace) {
				m.q.refuse(err)
			}
			m.q.refuseTries(asked, err)
			if err := async.Sleep(ctx, pause(failures)); err != nil {
				return err
			}
			continue
		}
		if failures > 0 {
			failures = 0
			m.q.asked(claiming, nil)
		}
		if again == 0 {
			continue
		}
		t := time.NewTimer(again)
		select {
		case <-m.bell:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
	return nil
}

func (m *member) rest(ctx context.Context, asked time.Time, err error) error {
	if ctx.Err() == nil {
		m.q.asked(claiming, err)
		if !errors.Is(err, ErrNoSpace) { // of that all who wait are told, by succeed
			m.q.refuseTries(asked, err)
		}
	}
	_ = async.Sleep(ctx, 100*time.Millisecond)
	return err
}

// longWait is how long a member waits at most before it looks without having been told.
const longWait = 5 * time.Second

// step does one thing, and returns how long to wait for the bell before the next.
func (m *member) step(ctx context.Context) (wait time.Duration, err error) {
	if err := m.session.err(); err != nil {
		return 0, err
	}
	m.gather(ctx)
	if items, err := m.arrivals(ctx); err != nil || len(items) > 0 {
		m.deliver(items)
		return 0, err
	}
	want := m.q.wanted()
	switch mine, others, listed := m.stand(); {
	case !listed: // the bell rings then
		return longWait, nil
	case want == 0 && mine:
		return m.withdraw(ctx)
	case want == 0:
		return longWait, nil
	case m.q.update != nil:
		return m.claimAlone(ctx, want)
	case others:
		m.crowded = time.Now()
		return m.throughRequest(ctx, want)
	case !mine && time.Since(m.crowded) > crowd:
		return m.direct(ctx, want)
	default:
		return m.throughRequest(ctx, want)
	}
}

// gather has those who are about to ask come to those who wait, if the next transaction is for
// all of them.
func (m *member) gather(ctx context.Context) {
	m.mu.Lock()
	asked := m.mine != ""
	m.mu.Unlock()
	if !asked && m.q.waiting() > 0 {
		m.gathering.wait(ctx, m.q.waiting, m.bell)
	}
}

// deliver gives items to those who wait, and back what nobody wants any more.
func (m *member) deliver(items []Item) {
	served, left := m.q.hand(items)
	m.gathering.came = served
	m.q.giveBack(left)
}

// crowd is how long a member that has met others stages its claims.
const crowd = time.Second

// stand reports whether a request of this member stands, and whether others do, as far as
// was listed.
func (m *member) stand() (mine, others, listed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mine = m.mine != "" || m.strayLocked() != ""
	others = slices.ContainsFunc(m.requests, func(r standing) bool { return r.session != m.id })
	return mine, others, m.listed
}

// strayLocked returns a request of this member that stands, whether it is remembered as
// such or not: one whose answer was lost comes to stand late.
func (m *member) strayLocked() string {
	if i := slices.IndexFunc(m.requests, func(r standing) bool { return r.session == m.id }); i >= 0 {
		return m.requests[i].key
	}
	return ""
}

// direct claims items from the front of the queue if no request stands: nobody passes one
// that waits.
func (m *member) direct(ctx context.Context, want int) (wait time.Duration, err error) {
	waiters := m.q.listed()
	stand := m.standingRange()
	look, err := m.q.front(ctx, want, Range{Begin: stand.Key, End: stand.End, Limit: 1, KeysOnly: true})
	if err != nil {
		return 0, err
	}
	if len(look.of[0].Pairs) > 0 {
		return m.ask(ctx, look.snapshot, want)
	}
	shares := deal([]int{want}, look.front, m.q.maxItem, m.fitsBeside())
	if len(shares) == 0 {
		m.q.nothing(waiters)
		if want = m.q.wanted(); want == 0 {
			return longWait, nil
		}
		return m.ask(ctx, look.snapshot, want)
	}
	t := transaction{q: m.q, guards: []Guard{m.lives(), stand}}
	mine := look.front[:shares[0].end]
	for _, h := range mine {
		t.claim(m.id, h, len(mine))
	}
	ok, err := m.commit(ctx, &t, mine, m.addCarried(&t))
	if !ok && err == nil {
		m.crowded = time.Now()
		m.q.counts.conflicts.Add(1)
	}
	return 0, err
}

// standingRange is a guard that no request stands. The range begins a while ago: what
// was deleted before that is not visited, and a request that stood still for so long on its way
// here may be passed.
func (m *member) standingRange() Guard {
	old := m.q.seen.old(time.Now())
	return Guard{Key: m.q.lay.from("r", old), End: after(m.q.lay.all("r")), Is: Absent}
}

// fits reports whether so many items for so many requests are one transaction.
func (q *Queue) fits(takers, items int) bool {
	return items <= q.maxItems && items+takers+2 <= q.limits.Guards && 2*items+takers+2 <= q.limits.Writes
}
