package kvqueue

import (
	"context"
	"slices"
	"sync"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// Take claims items as [Queue.Do] does, for the scope of ctx, and returns them. They are
// settled by the end of that scope: acknowledged if it ended well; back in their places, one
// attempt later, if it failed; back without an attempt if it was told to stop. ctx itself may
// end before, as one with a time limit for the wait does: that changes nothing for the items.
//
// If the claims are lost the scope is cancelled with a [*LostError], which is its failure.
// When all of the items were settled, by [Queue.Ack] and the like, the scope keeps nothing of
// them, however long it lasts.
//
// It blocks as Do does, and its errors are those of Do before f is called. A context without a
// scope is [ErrNoScope], and a scope that has ended is [async.ErrScopeEnded].
func (q *Queue) Take(ctx context.Context, most int) ([]Item, error) {
	return q.take(ctx, most, false)
}

// TryTake is [Queue.Take] that does not wait for items: without one it returns none, and no
// error. It does ask the store, and waits for its answer.
func (q *Queue) TryTake(ctx context.Context, most int) ([]Item, error) {
	return q.take(ctx, most, true)
}

func (q *Queue) take(ctx context.Context, most int, try bool) ([]Item, error) {
	scope := bridge.ScopeOf(ctx)
	if scope == nil {
		return nil, ErrNoScope
	}
	t := &taken{scope: scope}
	if t.atEnd = bridge.AtEnd(scope, t); t.atEnd == nil {
		return nil, async.ErrScopeEnded
	}
	items, err := q.claims(ctx, most, try)
	if err != nil || len(items) == 0 {
		t.atEnd.Remove()
		return nil, err
	}
	if !t.has(items) {
		q.giveBack(items)
		return nil, async.ErrScopeEnded
	}
	items[0].claim.life.look(t)
	return items, nil
}

// A taken is what one call of Take has claimed for a scope. It is registered with the scope and
// with the life of the claims until the scope ends or all of the claims have, whichever is
// first.
type taken struct {
	scope context.Context
	atEnd bridge.Registration // has ScopeEnds called

	mu    sync.Mutex
	over  bool   // the scope has ended
	items []Item // nil when all of them were settled
	left  int    // how many of them were not
}

// has gives t its items, and reports false if the scope has ended before.
func (t *taken) has(items []Item) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.items, t.left = slices.Clone(items), len(items) // the caller may do with the other slice what it likes
	for _, i := range items {
		i.claim.taken = t // nobody else knows the claim yet
	}
	return true
}

// settled notes that one of the claims has ended.
func (t *taken) settled(l *life) {
	t.mu.Lock()
	t.left--
	last := t.left == 0
	if last {
		t.items = nil
	}
	t.mu.Unlock()
	if last {
		t.atEnd.Remove()
		l.unlook(t)
	}
}

// ScopeEnds is called by package async when the scope ends. It leaves the settling, which
// waits, to the exit hook that is run next.
func (t *taken) ScopeEnds(how bridge.Ending, outcome error) {
	t.mu.Lock()
	t.over = true
	items := t.items
	t.mu.Unlock()
	if len(items) == 0 {
		return
	}
	items[0].claim.life.unlook(t)
	async.OnExit(t.scope, func(ctx context.Context, _ error) error {
		_, err := settleAll(ctx, items, verdictOf(how), outcome)
		return err
	})
}

// look has t told when the claims of l are lost, unless there is nobody to be told any more.
func (l *life) look(t *taken) {
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
		<-l.lost
		bridge.Fail(t.scope, l.why)
	}
}

// lasts reports whether t has claims, and its scope has not ended.
func (t *taken) lasts() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.over && t.left > 0
}

func (l *life) unlook(t *taken) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.takes, t)
}
