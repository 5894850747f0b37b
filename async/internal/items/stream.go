package items

import (
	"context"
	"iter"
	"runtime"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is the engine of sequence.go: a stream as a whole, and what becomes
// of outcomes that nobody takes. Its two sides stand in files of their own: the
// calling goroutine, on which the sequence runs, in caller.go, and the way of the
// items to the workers in supply.go.
//
// An item is pulled, waits for a worker, is worked on, and has ended. Then its
// outcome waits to be taken: by the loop of Map and AsCompleted, or, in ForEach and
// after the loop was left, by drop at once.

// A Stream is one call of ForEach, Map or AsCompleted.
type Stream[A, B any] struct {
	s        *tree.Scope
	crew     Crew[*entry[A, B]]
	work     func(context.Context, A) (B, error)
	limit    int // how many items may be unfinished or untaken; 0: any number
	failFast bool
	order    Order
	drop     func(v *tree.Verdict) // what is done with an outcome that nobody takes
	patience patience              // of the caller
	parked   *tree.Waiter          // the caller's, used again and again

	mu     tree.Mutex // guards what follows; taken before Scope.Mu
	supply supply[A, B]
	pulled int // how many items there were so far
	// open is how many are unfinished or untaken. With a limit it is never above
	// that: the caller waits for room before it pulls.
	open int
	// untaken are those to be taken: with InOrder all that were pulled, in that
	// order, whether or not they have ended; else those that have ended.
	untaken ring[*entry[A, B]]
	spare   []*entry[A, B] // to be used again
	// dropping: nobody takes outcomes, they are dropped as they end. It is set from
	// the first in ForEach, else when the loop is left, and never cleared.
	dropping bool
	failed   bool // an item has, and that is to stop the rest
	// caller is the waiter of the caller while it waits for want. It is taken by the
	// one goroutine that is to notify it.
	caller *tree.Waiter
	want   want
}

// Order is the order in which outcomes are taken.
type Order uint8

const (
	InNone  Order = iota // they are not
	InOrder              // as they were pulled
	AsEnded              // as they ended
)

// Options say how items are worked on.
type Options struct {
	Limit       int           // 0: none
	FailFast    bool          // the first failure stops the rest
	ItemTimeout time.Duration // of each item; 0: none
}

// An Result is the outcome of one item.
type Result[T any] struct {
	Index int // its place in the sequence
	Value T
	Err   error
}

// New returns a stream whose items are tasks of s. work is done on each; fn is
// the user's function, by whose name they go.
func New[A, B any](
	s *tree.Scope, o Options, fn any, work func(context.Context, A) (B, error), in Order,
) *Stream[A, B] {
	m := &Stream[A, B]{s: s, work: work, limit: o.Limit, failFast: o.FailFast, order: in}
	_, nothing := any(*new(B)).(struct{})
	m.crew.Scope, m.crew.Func, m.crew.Timeout, m.crew.Nothing = s, fn, o.ItemTimeout, nothing
	m.crew.Do, m.crew.Next, m.crew.More, m.crew.unrun = m.do, m.next, m.more, m.unrun
	m.crew.Tell = func(e *entry[A, B], v *tree.Verdict) { m.tell(nil, e, v) }
	m.drop = m.raise
	if in == InNone {
		m.dropping, m.drop = true, m.failScope
	}
	return m
}

// ForEach is the body of ForEach. If the sequence panics or calls Goexit, items
// that have not been begun are not.
func (m *Stream[A, B]) ForEach(items iter.Seq[A]) {
	defer m.close()
	if m.pull(items, func() bool { m.wait(wantRoom); return true }) != nil {
		tree.RecordSkipped(m.s) // there may be more
	}
	m.wait(wantEmpty)
}

// Iterate is Map and AsCompleted: it ranges over items and has what comes of
// them yielded.
func Iterate[A, B any](
	ctx context.Context, so *tree.ScopeOptions, items iter.Seq[A], o Options, fn any,
	work func(context.Context, A) (B, error), in Order, yield func(Result[B]) bool,
) {
	s, err := tree.OpenScope(ctx, so, false)
	if err != nil {
		yield(Result[B]{Err: err})
		return
	}
	tree.TellStart(s.Task)
	m := New(s, o, fn, work, in)
	r := tree.ScopeCall{Scope: s, Exit: tree.ByReturn}
	defer func() { // also on Goexit, which goes on
		var err error
		if r.End(&err); err != nil && (s.StopBeforeEnd() == nil || listsErrors(err)) {
			s.Home.Report(err) // of an observer: the loop has no place for it
		}
	}()
	if err := m.run(&r, items, yield); err != nil {
		r.Exit, r.Err = tree.ByPanic, err
	}
}

// run runs the loop and leaves it. The goroutine is that of the user's loop, which
// may be left in any way. So all is joined in a deferred call, before the range
// statement ends.
//
// A panic of the loop goes on as it was, as that of a body does, see ScopeCall.call:
// nobody can see which of it and a panic of an item came first, so the item's comes
// second. An error is a panic(nil) of old: from Goexit run does not come back.
func (m *Stream[A, B]) run(r *tree.ScopeCall, items iter.Seq[A], yield func(Result[B]) bool) (err error) {
	through, came := false, false
	defer func() {
		value := recover()
		switch {
		case value != nil:
			p := tree.Trap(m.s.Task, value)
			r.Exit, r.Err = tree.ByPanic, p
			m.s.RecordOutcome(&tree.Verdict{Err: p, Panic: tree.Codec.PanicIn(p)}, true)
		case !came:
			err = tree.Trap(m.s.Task, nil)
		}
		if !through {
			m.leave()
		}
		m.close()
		if value != nil {
			r.Raise(value)
		}
	}()
	through = m.loop(items, yield)
	came = true
	return nil
}

// listsErrors reports whether err, of a scope that was cancelled, tells of more
// than that. The cancellation itself the loop has yielded, or has brought about.
func listsErrors(err error) bool {
	list := tree.Codec.ListIn(err)
	return list != nil && len(list.Errs) > 0
}

// leave cancels what was begun: the loop has been left. An item that ends from here on
// is dropped as it ends.
func (m *Stream[A, B]) leave() {
	m.mu.Lock()
	m.dropping = true
	m.supply.waiting = ring[*entry[A, B]]{}
	var dropped []*tree.Verdict
	// Items that have ended are dropped here, those that have not by endLocked: it sees dropping,
	// which is set under the same lock.
	for m.untaken.n > 0 {
		if e := m.untaken.pop(); e.ended && e.result.Err != nil {
			dropped = append(dropped, &e.v)
		}
	}
	m.mu.Unlock()
	m.s.Cancel(tree.Canceled(tree.ErrDecided))
	for _, v := range dropped {
		m.drop(v)
	}
}

// raise deals with an outcome after the loop was left: an error is dropped, a panic
// or Goexit never is.
func (m *Stream[A, B]) raise(v *tree.Verdict) {
	switch {
	case v.Panic != nil:
		m.s.RecordOutcome(v, false)
	case v.MustRaise():
		m.s.Home.Report(v.Err)
	}
}

// failScope deals with an outcome in ForEach: errors are the scope's.
func (m *Stream[A, B]) failScope(v *tree.Verdict) {
	m.s.RecordOutcome(v, v.Panic == nil && !m.failFast)
}

// A patience says whether a goroutine that has nothing to do yields before it
// parks. Where items are tiny there is mostly something when it comes back, and
// to be woken costs more than the item. Where they are not, or where others
// keep the processors busy, it parks at once for a while.
type patience struct {
	tries  uint8  // yields in this round
	hits   uint8  // how many of them helped
	parked uint16 // how many times more it parks at once
}

const (
	patienceRound = 32                   // yields in a round; the last is timed
	patienceHits  = 8                    // so many must help
	patienceLimit = 3 * time.Microsecond // and the timed one takes no longer
	patienceOff   = 1000                 // else it parks at once so many times
)

func (p *patience) willing() bool {
	if p.parked > 0 {
		p.parked--
		return false
	}
	return true
}

func (p *patience) yield() {
	if p.tries++; p.tries < patienceRound {
		runtime.Gosched()
		return
	}
	start := tree.Clock()
	runtime.Gosched()
	if p.hits < patienceHits || tree.Clock()-start > patienceLimit {
		p.parked = patienceOff
	}
	p.tries, p.hits = 0, 0
}

func (p *patience) helped(yes bool) {
	if yes {
		p.hits++
	}
}
