package async

import (
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// A scope is what a task, a body or a root needs to own others: its children,
// what went wrong, and why it was cancelled.
//
// A body and a root have one from the first, a task on first need; see makeScope.
type scope struct {
	// These are set before anything is started in the scope, and never change. What
	// is started in it inherits most of them.
	t         *task // the task this is the inner scope of
	home      *root // the root of the tree
	limit     *limiter
	slot      *slot // what the code that runs with this scope's context lends while it waits; nil for nothing
	observers *observers
	on        Executor      // nil: goroutines
	opts      *scopeOptions // nil: all defaults
	depth     int32         // how many scopes are around it
	priority  int           // of what is started in it
	from      *origin       // of the contexts of what is started in it

	// young: it can be found, and its maker has not looked yet at what is above it;
	// see makeScope.
	young atomicBool

	// sig is why its context is done; set once. stopped sets it, too, which only
	// looks: so nothing may have followed from it yet. Once cancelled is set, or
	// std, it is set under mu.
	sig atomicPointer[stopError]
	// std is made when somebody asks for Done; set once, under mu. From then on it
	// decides why the scope is cancelled. stdHere is what it points to.
	std     atomicPointer[stdContext]
	stdHere stdContext
	// parker is the scope's own waiter, notified of every cancellation. One wait at
	// a time uses it; another is on listeners.
	parker atomicPointer[waiter]

	hooksInTime atomicInt32 // hooks that run and are in time
	// abandoned: Scope returns, or has returned, without its tasks, which are no part of it
	// any more. It is set under mu in the step in which what Scope tells is taken.
	abandoned atomicBool

	// mu guards what follows. It is held briefly, never while user code runs or
	// anything blocks. The mu of a child's scope is taken before that of its owner.
	mu       mutex
	children *task // everything that has not settled, promises left out; the last one first
	promises *task // those nobody has resolved; nothing waits for them
	live     int   // how many children there are
	daemons  int   // how many of them are daemons or groups

	listeners *waiter // waits under this scope's context, to be told of a cancellation
	// joiner is the waiter of the goroutine that joins, while it waits for the
	// children. That goroutine takes it back under mu: then nobody can notify it.
	joiner *waiter
	// changed is closed, and nil again, when a child leaves. Only Shutdown waits for it.
	changed chan struct{}
	// leftAtRoot stands at the root for s, which has returned without its tasks: the last
	// of these to leave, daemons and groups left out, takes it, and ends s.
	leftAtRoot *task

	exits *exitHook    // the one registered last; the others follow
	tally *tally.Tally // nil until something goes wrong, or a value waits to be given
	led   bool         // a leader in it has cancelled it, or is about to

	alarm   *time.Timer // prints the panic that is to be raised, if that takes long
	unwatch func() bool // takes us off the context we watch
	timers  []*time.Timer

	returnedErr error // what Scope has returned, if it did so without its tasks

	// These are never cleared.
	ended     bool // nothing can be started any more
	cancelled bool // sig was passed on: to waits, hooks, and what is below
	credited  bool // a caller was told that it was the first to cancel s; see credit
	summed    bool // the outcome is being made; what fails now is the root's to report
	dismissed bool // the daemons have been cancelled
	gaveUp    bool // DetachAfter has passed
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

// signal returns why s was cancelled, nil if it was not before it ended. That it has
// ended is a signal for its context, not for its outcome.
func (s *scope) signal() *stopError {
	if sg := s.sig.Load(); sg != endedSignal {
		return sg
	}
	return nil
}

// inherit takes over from the owner what holds for everything inside it. The
// origin of its task has been set. A Limit, an observer or an executor of its own
// is set after that.
func (s *scope) inherit(o *scope) {
	s.home, s.limit, s.observers, s.on, s.depth, s.priority = o.home, o.limit, o.observers, o.on, o.depth+1, o.priority
	s.from = s.t.origin()
}

// task returns the task that s is the inner scope of; nil for a nil s.
func (s *scope) task() *task {
	if s == nil {
		return nil
	}
	return s.t
}

// add makes t a child of s. Registering, counting and the ended flag share
// one lock, so a task is either joined or refused.
//
// It is refused only when s has ended. In a scope that is cancelled a task still
// runs, so that one which must close a channel is never skipped.
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

// linkLocked puts t on the list of s. A promise is not counted: s does not wait for
// it.
func (s *scope) linkLocked(t *task) {
	if exploring {
		born(t)
	}
	list := &s.children
	if t.kind == kindPromise {
		list = &s.promises
	} else {
		s.live++
		if t.isDismissible() {
			s.daemons++
			// The joiner may wait for daemons alone that it has dismissed.
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

// leave takes t off the list, and wakes the joiner if only daemons and groups are left,
// or nobody. It is the last thing that happens to t in s: when it has returned, s may
// have ended.
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
		if t.isDismissible() {
			s.daemons--
		}
	}
	if s.joiner != nil && s.live <= s.daemons {
		s.joiner.settled()
	}
	if s.changed != nil {
		s.wakeLocked()
	}
	if s.leftAtRoot != nil && s.live <= s.daemons {
		// leftAtRoot is taken under the lock, so that s is ended once. Exit hooks run there:
		// not on the goroutine of a task that has ended.
		go s.endAbandoned(s.leftAtRoot)
		s.leftAtRoot = nil
	}
	s.mu.Unlock()
}

// join waits until everything started in s has ended. It reports false if
// DetachAfter has passed before.
//
// It looks again whenever its waiter is notified: there may be news that is none,
// as when a task left and another was started. Daemons are cancelled without the
// lock; what has changed meanwhile is seen at the next look.
func (s *scope) join() bool {
	for {
		s.mu.Lock()
		daemons := s.strayDaemonsLocked()
		switch {
		case s.live == 0:
			s.mu.Unlock()
			return true
		case len(daemons) > 0: // also if they are left behind then
			// Marked before they are cancelled: another look must not find them.
			s.dismissed = true
			for _, d := range daemons {
				d.more.dismissed = true
			}
			s.mu.Unlock()
			for _, d := range daemons {
				d.dismiss()
			}
		case s.mayLeaveLocked():
			s.mu.Unlock()
			return false
		default:
			s.mu.Unlock()
			s.parkJoiner()
		}
	}
}

// strayDaemonsLocked returns the daemons and groups that are to be told that s is done:
// once nobody else is left, those that were not told yet. Each is told once: one
// that is about to leave can not be cancelled any more, and shows no sign of it.
func (s *scope) strayDaemonsLocked() []*task {
	if s.live == 0 || s.live > s.daemons {
		return nil
	}
	return s.childrenLocked(func(t *task) bool {
		return t.isDismissible() && !t.more.dismissed
	})
}

// parkJoiner waits until there may be news for join. The waiter is not the
// scope's parker: a bare goroutine that uses our ctx may hold that. What was left
// behind lends no slot: it would be that of the caller, who has gone on.
func (s *scope) parkJoiner() {
	w := waiters.Get().(*waiter)
	// A task leaves under the lock: it did so before, and is seen here, or finds the
	// joiner. The slot is lent under it, too, or what waits for it could start between,
	// and go before those whose wait is over.
	s.mu.Lock()
	if s.live == 0 || s.mayLeaveLocked() || len(s.strayDaemonsLocked()) > 0 {
		s.mu.Unlock()
		w.recycle(s, false, true)
		return
	}
	if w.slot = nil; !s.abandoned.Load() {
		s.t.lendSlot(w)
	}
	s.joiner = w
	s.mu.Unlock()
	got := w.park()
	// Taken back under the lock under which it is notified: after this w can be used
	// for another wait.
	s.mu.Lock()
	s.joiner = nil
	s.mu.Unlock()
	w.takeSlotBack(got)
	w.recycle(s, false, true)
}

// childrenLocked returns the children that f picks, in the order they came. f must
// not call users' code: s is locked.
func (s *scope) childrenLocked(f func(*task) bool) []*task {
	var some []*task
	for t := s.children; t != nil; t = t.next {
		if f(t) {
			some = append(some, t)
		}
	}
	// The list has the last one first.
	for i, j := 0, len(some)-1; i < j; i, j = i+1, j-1 {
		some[i], some[j] = some[j], some[i]
	}
	return some
}

// change returns a channel that is closed when the next child of s leaves.
func (s *scope) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// wakeLocked has those that wait for a change of s look again.
func (s *scope) wakeLocked() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
