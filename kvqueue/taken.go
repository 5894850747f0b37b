package kvqueue

import (
	"context"
	"slices"
	"sync"

	"github.com/ambit-go/ambit/async"
)

// Take claims items as [Queue.Do] does, for the scope of ctx, and returns them. They are
// settled by the end of that scope: acknowledged if it ended well; back in their places, one
// attempt later, if it failed; back without an attempt if it was told to stop. ctx itself may
// end before, as one with a time limit for the wait does: that changes nothing for the items.
//
// If the claims are lost the scope is cancelled with a [*LostError], which is its failure. A scope
// that was cancelled before lists it beside its cause: if it was told to stop, that stays how it
// has ended, and no attempt is spent on what it has taken from other queues.
// When all of the items were settled, by [Queue.Ack] and the like, the scope keeps nothing of
// them, however long it lasts.
//
// It blocks as Do does, and its errors are those of Do before f is called. A context without a
// scope is [ErrNoScope], and a scope that has ended is [async.ErrScopeEnded].
func (q *Queue) Take(ctx context.Context, most int) ([]Item, error) {
	return q.take(ctx, most, false)
}

// TryTake is [Queue.Take] that does not wait for items: without one it returns none, and no
// error. It does ask the store, and waits for its answer; if the store fails it returns that error.
func (q *Queue) TryTake(ctx context.Context, most int) ([]Item, error) {
	return q.take(ctx, most, true)
}

func (q *Queue) take(ctx context.Context, most int, try bool) ([]Item, error) {
	t := &taken{ctx: ctx}
	if err := t.join(); err != nil {
		return nil, err
	}
	items, err := q.claims(ctx, most, try)
	if err != nil || len(items) == 0 {
		t.stop()
		return nil, err
	}
	if !t.has(items) {
		q.giveBack(items)
		return nil, async.ErrScopeEnded
	}
	items[0].claim.session.look(t)
	return items, nil
}

// A taken is what one call of Take has claimed for a scope. It is registered with the scope and
// with the session of the claims until the scope ends or all of the claims have, whichever is
// first.
type taken struct {
	ctx  context.Context // its scope is that of the items
	stop func() bool     // takes end off the scope

	unlimit func() // ends the time limit of the items; set with these

	mu    sync.Mutex
	over  bool   // the scope has ended
	items []Item // nil when all of them were settled
	left  int    // how many of them were not
}

// join has end called at the end of the scope. It returns an error if there is no scope, or the
// scope has ended.
func (t *taken) join() (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case string:
			if t.ctx == nil {
				panic(r)
			}
			err = ErrNoScope
		default:
			panic(r)
		}
	}()
	t.stop = async.OnExit(t.ctx, t.end)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return async.ErrScopeEnded
	}
	return nil
}

// has gives t its items, and reports false if the scope has ended before.
func (t *taken) has(items []Item) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.unlimit = items[0].claim.session.q.limit(t.ctx, items)
	t.items, t.left = slices.Clone(items), len(items) // the caller may do with the other slice what it likes
	for _, i := range items {
		i.claim.taken = t // nobody else knows the claim yet
	}
	return true
}

// settled notes that one of the claims has ended.
func (t *taken) settled(l *session) {
	t.mu.Lock()
	t.left--
	last := t.left == 0
	if last {
		t.items = nil
	}
	t.mu.Unlock()
	if last {
		t.unlimit()
		t.stop()
		l.unlook(t)
	}
}

// end is the exit hook of the scope: it settles what is left.
func (t *taken) end(ctx context.Context, outcome error) error {
	t.mu.Lock()
	t.over = true
	items := t.items
	t.mu.Unlock()
	if len(items) == 0 {
		return nil
	}
	t.unlimit()
	items[0].claim.session.unlook(t)
	_, err := settleAll(ctx, items, verdictOf(async.EndingOf(outcome)), outcome, func() {})
	return err
}

// look has t told when the claims of l are lost, unless there is nobody to be told any more.
func (l *session) look(t *taken) {
	l.mu.Lock()
	over := l.over
	if !over && t.lasts() { // one step: what ends t from now on takes it off again
		if l.takes == nil {
			l.takes = map[*taken]struct{}{}
		}
		l.takes[t] = struct{}{}
	}
	l.mu.Unlock()
	if over {
		<-l.lost.Done()
		async.Fail(t.ctx, l.why)
	}
}

// lasts reports whether t has claims, and its scope has not ended.
func (t *taken) lasts() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.over && t.left > 0
}

func (l *session) unlook(t *taken) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.takes, t)
}
