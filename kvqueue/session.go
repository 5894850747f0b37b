package kvqueue

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
)

// A session is one of the store, as this process knows it: the time in which the others count this
// process as alive. Its items are claimed in the name of the session, and the claims end with it. A
// handle has one session at a time, and begins the next when something is wanted.
type session struct {
	q  *Queue
	s  Session
	id int64

	lost context.Context         // done when the session has ended; its cause is why
	lose context.CancelCauseFunc // of lost; called by end, once
	why  *LostError              // filled in before lost is done

	mu      sync.Mutex
	over    bool
	term    lease.Term                 // on the clock of q: for how long the store counts us as alive
	takes   map[*taken]struct{}        // that are told when the session ends
	delayed map[*time.Timer]settlement // settlements that wait for their time; they end with the session

	seq uint64 // the last transaction of enqueues; used by their one task

	// held is how many claims were handed over that nobody settles or has settled. The end of
	// the session takes it, and leaves it far below 0: a claim is counted there, or by its settler.
	held atomic.Int64

	took atomic.Int64 // by the last transaction that has ended claims, in nanoseconds

	settles combiner[settlement]
	member  *member // what claims; nil while nothing was ever wanted; guarded by q.mu
	claimed bool    // there was a member; guarded by q.mu
}

// alive returns the session of q, and begins one if there is none.
func (q *Queue) alive(ctx context.Context) (*session, error) {
	l, err := q.now()
	if err != nil || l != nil && l.err() == nil { // no place is held here: err may tell the observer of the end
		return l, err
	}
	return q.revive(ctx)
}

// now returns the session that there is, if there is one.
func (q *Queue) now() (*session, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	return q.session, nil
}

// revive begins a session, unless another call has done so meanwhile.
func (q *Queue) revive(ctx context.Context) (*session, error) {
	select {
	case q.opening <- struct{}{}:
		defer func() { <-q.opening }()
	case <-ctx.Done():
		return nil, q.stop(ctx)
	}
	l, err := q.now()
	if l != nil || err != nil { // a session that has ended is forgotten
		return l, err
	}
	answered := q.asks(beginning)
	if l, err = q.begin(ctx); err != nil {
		if ctx.Err() == nil {
			q.asked(beginning, err)
		} else {
			err = q.says(ctx, err)
		}
		answered()
		return nil, err
	}
	answered()
	q.asked(beginning, nil)
	q.mu.Lock()
	closed := q.closed
	if !closed && q.group.Go(l.keep, async.Name("kvqueue: keep the session of "+q.name)) == nil {
		q.session = l
		q.mu.Unlock()
		return l, nil
	}
	q.mu.Unlock()
	end, cancel := context.WithTimeout(ctx, q.set.ttl)
	defer cancel()
	_ = l.s.End(end)
	return nil, ErrClosed // or async.Shutdown has ended what stands behind the handle
}

// begin begins a session of the store, and puts the keys that vanish with it.
func (q *Queue) begin(ctx context.Context) (*session, error) {
	if err := q.check(ctx); err != nil { // the store may be another than that of the last session
		return nil, err
	}
	sent := q.clock()
	s, err := q.kv.Session(ctx, q.set.ttl)
	if err != nil {
		return nil, err
	}
	l := &session{q: q, s: s, id: s.ID(), why: &LostError{Queue: q.name}, term: lease.Term{Granted: sent, Length: q.set.ttl},
		delayed: map[*time.Timer]settlement{}}
	l.lost, l.lose = context.WithCancelCause(context.Background())
	l.settles = combiner[settlement]{group: q.group, take: q.takeSettlements, run: l.settleBatch, silent: q.silent}
	_, err = q.kv.Commit(ctx, nil, []Write{
		{Key: q.lay.session("l", l.id), Value: []byte(q.set.owner), Session: s},
		{Key: q.lay.session("n", l.id), Value: encodeTurn(0, 0), Session: s},
	})
	if err != nil {
		_ = q.group.Go(func(ctx context.Context) error { // the caller does not wait for that
			end, cancel := context.WithTimeout(ctx, q.set.ttl)
			defer cancel()
			_ = s.End(end) // or it ends by itself
			return nil
		}, async.Name("kvqueue: end a session of "+q.name))
		return nil, err
	}
	return l, nil
}

// err returns why the session has ended; nil: it has not. It looks at the clock: after the
// machine stood still the timer may be late.
func (l *session) err() error {
	l.mu.Lock()
	late := !l.over && l.q.clock() >= l.term.Believed()
	over := l.over
	l.mu.Unlock()
	switch {
	case late:
		l.end("the store could not be told in time that this process lives", nil)
	case !over:
		return nil
	}
	<-l.lost.Done()
	return l.why
}

// end ends the session: every context of what was claimed in it is cancelled.
func (l *session) end(reason string, err error) {
	l.mu.Lock()
	first := !l.over
	l.over = true
	takes, delayed := l.takes, l.delayed
	l.takes, l.delayed = nil, nil
	l.mu.Unlock()
	if !first {
		return
	}
	lost := int(l.held.Swap(math.MinInt64 / 2))
	for _, s := range delayed {
		s.claim.counted, lost = true, lost+1
	}
	l.why.Reason, l.why.Err = reason, err
	l.lose(l.why)
	l.q.forget(l)
	for t := range takes { // by now their claims are no more
		async.Fail(t.ctx, l.why)
	}
	if lost > 0 {
		l.tellLost(lost, reason)
	}
	for t, s := range delayed {
		t.Stop()
		_ = s.claim.lose(l.why)
	}
}

// tellLost tells the observer that claims were lost. Whoever has noticed it may be the one task
// that adds items, so it does not wait for an observer that adds one.
func (l *session) tellLost(items int, reason string) {
	report := Report{Kind: Lost, Items: items, Why: reason}
	if l.q.group.Go(func(context.Context) error { l.q.tell(report); return nil }) != nil {
		l.q.tell(report)
	}
}

// keep renews the session until it ends.
func (l *session) keep(ctx context.Context) error {
	l.mu.Lock()
	term, last := l.term, error(nil)
	l.mu.Unlock()
	_, due := term.Renewal(rand.Float64())
	for l.pause(ctx, min(due, term.Believed())) == nil {
		sent := l.q.clock()
		patience := term.Patience(sent)
		if patience == 0 {
			l.end("the store could not be told in time that this process lives", last)
			return nil
		}
		call, cancel := context.WithTimeout(ctx, patience)
		last = l.s.Renew(call)
		cancel()
		switch {
		case errors.Is(last, ErrSessionLost):
			l.end("the store has ended the session", last)
			return nil
		case last != nil:
			due = term.Again(sent)
		default:
			term.Granted = sent
			_, due = term.Renewal(rand.Float64())
			l.mu.Lock()
			l.term = term
			l.mu.Unlock()
		}
	}
	return nil
}

// pause waits until a time, or until the session or ctx ends. It looks at the clock once a second at
// least, as timers do not count the time in which a machine is suspended.
func (l *session) pause(ctx context.Context, until time.Duration) error {
	for left := until - l.q.clock(); left > 0; left = until - l.q.clock() {
		t := time.NewTimer(min(left, time.Second))
		select {
		case <-t.C:
		case <-l.lost.Done():
			t.Stop()
			return l.why
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
	return nil
}

// ring is the write that tells those who wait that there is something to look at.
func (l *session) ring() Write {
	return Write{Key: append(l.q.lay.session("n", l.id), 'b'), Session: l.s}
}

// lives is the guard that holds while the session does.
func (l *session) lives() Guard { return Guard{Key: l.q.lay.session("l", l.id), Is: Present} }
