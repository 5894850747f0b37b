package async

import (
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// A scope is what a task, a body or a root needs to own others: its children,
// what went wrong, and why it was cancelled.
type scope struct {
	t         *task // the task this is the inner scope of
	home      *root // the root of the tree
	limit     *limiter
	slot      *slot // what the code that runs with this scope's context lends while it waits; nil for nothing
	observers *observers
	on        Executor      // nil: goroutines
	opts      *scopeOptions // nil: all defaults
	depth     int32         // how many scopes are around it
	young     atomicBool    // it can be found, and its maker has not looked yet at what is above it; see makeScope
	priority  int           // of what is started in it

	from *origin // of the contexts of what is started in it

	// sig is why its context is done; set once. stopped sets it, too, which only
	// looks: so nothing may have followed from it yet. Once cancelled is set, or
	// std, it is set under mu.
	sig     atomicPointer[stopError]
	std     atomicPointer[stdContext] // made when somebody asks for Done; set once, under mu
	stdHere stdContext                // what std points to
	parker  atomicPointer[waiter]     // the scope's own waiter, notified of every cancellation

	hooksInTime atomicInt32 // hooks that run and are in time
	abandoned   atomicBool  // Scope has returned without its tasks, which are no part of it any more
	mu          mutex       // guards what follows; held briefly, never while user code runs
	children    *task       // everything that has not settled, promises left out
	promises    *task       // those nobody has resolved; they hold nothing up
	live        int         // children
	daemons     int         // children that are daemons
	listeners   *waiter     // waits under this scope's context, to be told of a cancellation
	joiner      *waiter     // of the goroutine that joins, while it waits for the children
	changed     chan struct{}
	exits       *exitHook    // the one registered last; the others follow
	tally       *tally.Tally // nil until something goes wrong, or a value waits to be given
	raised      *PanicError  // stands for the panic that a Scope in here has raised last
	alarm       *time.Timer  // prints the panic that is to be raised, if that takes long
	unwatch     func() bool  // takes us off the context we watch
	timers      []*time.Timer
	returnedErr error // what Scope has returned although tasks are left
	left        *task // at the root; set if Scope has returned without its tasks, the last of which ends it
	ended       bool  // nothing can be started any more
	cancelled   bool  // sig was passed on: to waits, hooks, and what is below
	summed      bool  // the outcome is being made; what fails now is the root's to report
	dismissed   bool  // the daemons have been cancelled
	gaveUp      bool  // DetachAfter has passed
}

// newScope returns the inner scope of t, with what it inherits.
func newScope(t *task) *scope {
	s := &scope{t: t}
	if o := t.owner; o != nil {
		s.inherit(o)
	}
	if m := t.more; m != nil {
		s.slot, s.priority = m.slot, m.priority
	}
	return s
}

// signal returns why s was cancelled, nil if it was not before it ended.
func (s *scope) signal() *stopError {
	if sg := s.sig.Load(); sg != endedSignal {
		return sg
	}
	return nil
}

// inherit takes over from the owner what holds for everything inside it. The
// origin of its task has been set.
func (s *scope) inherit(o *scope) {
	s.home, s.limit, s.observers, s.on, s.depth, s.priority = o.home, o.limit, o.observers, o.on, o.depth+1, o.priority
	s.from = s.t.origin()
}

func (s *scope) task() *task {
	if s == nil {
		return nil
	}
	return s.t
}

// add makes t a child of s. Registering, counting and the ended flag share
// one lock, so a task is either joined or refused.
func (s *scope) add(t *task) bool {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return false
	}
	s.linkLocked(t)
	s.mu.Unlock()
	return true
}

func (s *scope) linkLocked(t *task) {
	if exploring {
		born(t)
	}
	list := &s.children
	if t.kind == kindPromise {
		list = &s.promises
	} else {
		s.live++
		if t.more != nil && t.more.daemon {
			s.daemons++
			if s.dismissed && s.joiner != nil {
				s.joiner.settled() // to tell t at once that s is done
			}
		}
	}
	if *list != nil {
		(*list).prev = t
	}
	t.next, *list = *list, t
}

// leave takes t off the list, and wakes the joiner if there may be news for it.
func (s *scope) leave(t *task) {
	s.mu.Lock()
	if t.next != nil {
		t.next.prev = t.prev
	}
	switch {
	case t.prev != nil:
		t.prev.next = t.next
	case s.children == t:
		s.children = t.next
	case s.promises == t:
		s.promises = t.next
	}
	t.next, t.prev = nil, nil
	if t.kind != kindPromise {
		s.live--
		if t.more != nil && t.more.daemon {
			s.daemons--
		}
	}
	if s.joiner != nil && s.live <= s.daemons {
		s.joiner.settled()
	}
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	last := s.left != nil && s.live == 0
	atRoot := s.left
	if last {
		s.left = nil
	}
	s.mu.Unlock()
	if last {
		go s.endAbandoned(atRoot)
	}
}

// join waits until everything started in s has ended. It reports false if
// DetachAfter has passed before and mayLeave says that this counts.
func (s *scope) join(mayLeave bool) bool {
	for {
		s.mu.Lock()
		daemons := s.strayDaemonsLocked()
		switch {
		case s.live == 0:
			s.mu.Unlock()
			return true
		case mayLeave && s.mayLeaveLocked():
			s.mu.Unlock()
			return false
		case len(daemons) > 0:
			s.dismissed = true
			for _, d := range daemons {
				d.more.dismissed = true
			}
			s.mu.Unlock()
			for _, d := range daemons {
				d.scope().cancel(canceled(ErrScopeDone))
			}
		default:
			s.mu.Unlock()
			s.parkJoiner(mayLeave)
		}
	}
}

// strayDaemonsLocked returns the daemons that are to be told that s is done:
// once nobody else is left, those that were not told yet. Each is told once: one
// that is about to leave can not be cancelled any more, and shows no sign of it.
func (s *scope) strayDaemonsLocked() []*task {
	if s.live == 0 || s.live > s.daemons {
		return nil
	}
	return s.childrenLocked(func(t *task) bool {
		return t.more != nil && t.more.daemon && !t.more.dismissed
	})
}

// parkJoiner waits until there may be news for join. The waiter is not the
// scope's parker: a bare goroutine that uses our ctx may hold that.
func (s *scope) parkJoiner(mayLeave bool) {
	w := waiters.Get().(*waiter)
	s.t.lendSlot(w)
	s.mu.Lock()
	over := s.live == 0 || mayLeave && s.mayLeaveLocked() || len(s.strayDaemonsLocked()) > 0
	if over {
		w.settled()
	} else {
		s.joiner = w
	}
	s.mu.Unlock()
	got := w.park()
	s.mu.Lock()
	s.joiner = nil // nobody knows w now
	s.mu.Unlock()
	w.takeSlotBack(got)
	w.recycle(s, false, true)
}

// childrenLocked returns the children that f picks, in the order they came.
func (s *scope) childrenLocked(f func(*task) bool) []*task {
	var some []*task
	for t := s.children; t != nil; t = t.next {
		if f(t) {
			some = append(some, t)
		}
	}
	for i, j := 0, len(some)-1; i < j; i, j = i+1, j-1 {
		some[i], some[j] = some[j], some[i]
	}
	return some
}
