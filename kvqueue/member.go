package kvqueue

import (
	"context"
	"errors"
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

	entered   bool // the store knows that this session claims
	gathering gathering
	values    map[Key][]byte // payloads that were read while their items were being claimed
	item      Key            // the first item when the queue was looked at last, though another assigns
	since     time.Time      // since when it was the first, and somebody here waits for an item
	unsure    bool           // there may be claims by a transaction whose answer was lost

	mu      sync.Mutex
	listed  bool                  // what follows stood at some time; before, nothing is known
	members map[int64]Rev         // the sessions that claim and live, and since when they do
	places  map[int64]demand      // what each of them wants to have, so far as it has said
	waits   map[int64]time.Time   // since when each of them wants more, or was given something last
	claims  map[int64]map[Key]Rev // of each session, so far as this member watches; and the revision of each
	all     bool                  // claims has those of all sessions, and not only of this
	at      Rev                   // when claims was listed last
	shown   Rev                   // each claim of this revision or before was shown, or is being shown
	arrived map[Rev][]ready       // claims of this session that are to be handed over, by transaction
	told    demand                // what the store knows of this session; -1 places: that is not known
	fewer   Rev                   // the last transaction after which the one that assigns gives less than was told
	telling bool                  // a transaction that changes this is on its way
	carried carried
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
		m = &member{session: l, bell: make(chan struct{}, 1), over: make(chan struct{}), values: map[Key][]byte{},
			members: map[int64]Rev{}, places: map[int64]demand{}, waits: map[int64]time.Time{}, claims: map[int64]map[Key]Rev{}, arrived: map[Rev][]ready{}}
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
	_ = async.Scope(ctx, m.claim, async.StopWith(m.lost))
	m.carryNoMore()
	if m.closing.Load() {
		m.giveUp(ctx)
	}
	m.q.succeed(m)
	return nil
}

// succeed has the waiters of a member that has ended begin again, under a new session.
func (q *Queue) succeed(m *member) {
	q.mu.Lock()
	if m.session.member == m {
		m.session.member = nil
	}
	waiters := q.waiters
	q.waiters = nil
	q.mu.Unlock()
	for _, w := range waiters {
		w.fail(errAgain)
	}
}

// claim looks again and again, whenever the bell has rung or nothing has come for long.
func (m *member) claim(ctx context.Context) error {
	pause := async.Jitter(0.5, async.Backoff(10*time.Millisecond, time.Second))
	for failures := 0; !m.closing.Load(); {
		m.carry()
		asked := time.Now()
		answered := m.q.asks(claiming)
		again, err := m.step(ctx)
		if err = fullOnly(err); answered() {
			failures++
		}
		if err != nil {
			m.carryNoMore()
		} else if again > 0 {
			m.settleBeforePause()
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
		if again > 0 {
			m.pauseFor(ctx, again)
		}
	}
	return nil
}

// pauseFor waits for the bell, but not for longer than most.
func (m *member) pauseFor(ctx context.Context, most time.Duration) {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-m.bell:
	case <-t.C:
	case <-ctx.Done():
	}
}

// enter says in the store that this session claims. If the answer is lost the others may count on it, though
// nobody here waits any more, so that it is tried until it is known to be done.
func (m *member) enter(ctx context.Context) error {
	w := Write{Key: m.q.lay.session("s", m.id), Value: []byte(m.q.set.owner)}
	if _, err := m.q.kv.Commit(ctx, []Guard{m.lives()}, []Write{w}); err != nil {
		return err
	}
	m.entered = true
	m.q.asked(claiming, nil)
	async.Go(ctx, m.follow, async.Daemon())
	async.Go(ctx, m.tendOthersIDs, async.Daemon())
	return nil
}

// longWait is how long a member waits at most before it looks without having been told.
const longWait = 5 * time.Second

// step does one thing, and returns how long to wait for the bell before the next.
func (m *member) step(ctx context.Context) (wait time.Duration, err error) {
	if err := m.session.err(); err != nil {
		return 0, err
	}
	if !m.entered {
		return 0, m.enter(ctx)
	}
	if done, err := m.handOver(ctx); done || err != nil {
		return 0, err
	}
	listed, assigns := m.stand()
	switch {
	case !listed: // the bell rings then
		return longWait, nil
	case m.q.update != nil:
		m.gather(ctx)
		return m.claimAlone(ctx)
	case assigns:
		m.gather(ctx)
		if told, err := m.tell(ctx, demand{}); told || err != nil { // nobody else assigns to this session
			return time.Millisecond, err
		}
		return m.assign(ctx, m.takers)
	default:
		return m.await(ctx)
	}
}

// stand reports whether anything is known of the others, and whether this member assigns.
func (m *member) stand() (listed, assigns bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listed, m.assignsLocked()
}

// assignsLocked reports whether this is the member that assigns items to all: that which has been one
// for longest, when it knows all claims.
func (m *member) assignsLocked() bool { return m.all && m.oldestLocked() }

func (m *member) oldestLocked() bool {
	mine, there := m.members[m.id]
	return there && m.olderLocked(mine) == 0
}

// olderLocked is how many members have been that for longer than since.
func (m *member) olderLocked(since Rev) (n int) {
	for _, rev := range m.members {
		if rev < since {
			n++
		}
	}
	return n
}

// gather has those who are about to ask come to those who wait, if the next transaction is for
// all of them.
func (m *member) gather(ctx context.Context) {
	if m.q.waiting() > 0 {
		m.gathering.wait(ctx, m.q.waiting, m.bell)
	}
}
