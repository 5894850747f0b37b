package async

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// A kind is what a task was made for.
type kind uint8

const (
	kindGo        kind = iota // started by Go
	kindFuture                // started by Execute; has waiters
	kindPromise               // has waiters, but nothing runs
	kindBody                  // a Scope or Shield: runs on the goroutine that called
	kindHook                  // a hook, on a goroutine of its own
	kindRun                   // one run of a task with Restart: a scope on the goroutine of the task
	kindDetached              // started by Detach
	kindLeft                  // stands at the root for a scope that returned without its tasks
	kindChoice                // a future that its children decide; see choice.go
	kindFork                  // a future that its children settle; see forkjoin.go
	kindContender             // a child of a choice
	kindWorker                // does items; see crew.go
	kindGroup                 // made by NewGroup: nothing runs in it but what is started
	kindRoot                  // owns what no scope owns
)

// An exitKind is how a handler ended.
type exitKind uint8

const (
	byGoexit exitKind = iota // neither of the two below, so it was runtime.Goexit
	byReturn                 // it returned
	byPanic                  // it panicked, and the panic was recovered
)

// work is what stands around a task and knows how to run it.
type work interface {
	run()             // runs the handler and settles; the body of the goroutine
	unrun(v *verdict) // settles a task that never ran, with v
	fn() any          // the handler, for its name
	future() *future  // nil if nobody can wait for it
}

// A gathering is a task in which nothing runs but what is started in it: a group. These
// are what the tree tells it, and asks of it.
type gathering interface {
	work
	close()                              // it is to end when all that was started in it has
	dismissing()                         // its owner is about to cancel it, and nobody has before
	cutOff(task string)                  // its dismissal has kept task from being done
	failedLocked()                       // something has failed in it
	tellOwner(v *verdict, f *tally.Fact) // writes to f what its owner is to know of its end with v
	tellRoot(f *tally.Fact)              // nobody was given its end
}

// A task is one node of the tree: one handler, on a goroutine. It is also the
// context that the handler is given.
//
// It is kept small because a program may have a million: what a task needs
// only if it starts something, waits, or is asked for its Done channel is in
// its inner scope, which is made on first need, and what only options need is
// in more.
type task struct {
	owner      *scope // the scope that joins it; nil for a root. Set before it is shared.
	prev, next *task  // in the owner's list; guarded by owner.mu

	// inner is nil until needed; then the task's own scope. A task that ends
	// without one gets endedScope, so that nobody can make one afterwards.
	inner atomicPointer[scope]
	more  *more // nil if nothing in it is set. Set before the task is shared.
	self  work  // nil for bodies and roots
	state atomicInt32
	kind  kind
	exit  exitKind // written by the handler's goroutine
}

// more is what few tasks have.
type more struct {
	taskOptions
	origin                   // of its context, if it differs from its owner's
	started    time.Duration // when, on our clock; only if observed
	slot       *slot         // only under a Limit
	delivery   *delivery     // only on an Executor
	expiryTold error         // what the first waiter was told instead of the outcome; guarded by future.mu
	countedOut atomicBool    // a hook is not among its owner's hooksInTime any more
	hooked     bool          // the abort hook has been started; guarded by inner.mu
	differs    bool          // origin is in use
	derived    bool          // origin.values is what decides when it is cancelled; see task.derived
	shielded   bool          // cancellation of what is around it does not reach it
	timed      bool          // origin.deadline is that of its own timeout
	dismissed  bool          // a daemon was told that its owner is done; guarded by owner.mu
}

// isScope reports whether t is what users open with the options of a scope.
func (t *task) isScope() bool { return t.kind == kindBody || t.kind == kindGroup }

// home returns the root that t stands under, that of the process if t is nil.
func (t *task) home() *root {
	switch {
	case t == nil:
		return process
	case t.owner == nil:
		return t.inner.Load().home
	default:
		return t.owner.home
	}
}

// scope returns t's inner scope, making it if need be.
func (t *task) scope() *scope {
	if h := t.inner.Load(); h != nil {
		return h
	}
	return t.makeScope()
}

// makeScope makes t's inner scope. A cancellation of the owner walks to the inner
// scopes that exist; one that is made later looks. The owner stores why before it
// walks, and we store the inner scope before we look: one of the two sees the
// other.
//
// Before it can be found, t asks its owner when it is asked whether it is
// stopped; after our look the inner scope knows. Between the two, while it is
// young, it asks the owner as t did: or t would say that it is stopped, and a
// moment later that it is not.
func (t *task) makeScope() *scope {
	h := newScope(t)
	h.young.Store(true)
	if sg := t.stopped(); sg != nil {
		h.sig.Store(sg) // what its context has said it goes on to say
	}
	if !t.inner.CompareAndSwap(nil, h) {
		return t.inner.Load()
	}
	h.listenAbove()
	h.young.Store(false)
	return h
}

// start registers t with its owner and sets it going. ctx is nil if t was
// started with the owner's own context. It reports false, and nothing runs, if
// the owner has ended.
func (t *task) start(owner *scope, ctx context.Context, opts []TaskOption) bool {
	t.owner = owner
	if owner.limit != nil {
		t.equip(owner.limit.newMoreWithSlot(t, owner.depth).set(owner, opts), ctx)
	} else if ctx != nil || len(opts) > 0 || owner.observers != nil || owner.on != nil {
		t.equip(newMore(owner, opts), ctx)
	}
	if !owner.add(t) {
		return false
	}
	if t.more == nil {
		go t.main()
	} else {
		t.begin()
	}
	return true
}

// begin sets t, which is a member of its owner and has more, going.
func (t *task) begin() {
	t.watchStops()
	switch {
	case t.owner.limit != nil:
		t.submit()
	case t.more.delivery != nil:
		t.launch()
	default:
		go t.main()
	}
}

// watchStops is called when t, which has more, is a member of its owner, before its
// handler is called.
func (t *task) watchStops() {
	if t.more.stops != nil {
		t.more.stops.watch(t)
	}
}

// endStops is called when the task of m, which may be nil, ends; see stops.
func (m *more) endStops(onItsOwn bool) {
	if m != nil && m.stops != nil {
		m.stops.end(onItsOwn)
	}
}

// equip gives t, which has not been started and has an owner, what few tasks
// have. ctx is nil if t is started with its owner's own. Such a task is seen as
// queued until its handler begins.
func (t *task) equip(m *more, ctx context.Context) {
	t.more = m
	if m.restart != nil {
		m.restart.standBefore(t, m)
	}
	t.setOrigin(ctx)
	t.state.Store(stateQueued)
}

func newMore(owner *scope, opts []TaskOption) *more { return new(more).set(owner, opts) }

// set sets m, of a task that is started in owner, and returns it.
func (m *more) set(owner *scope, opts []TaskOption) *more {
	m.priority = owner.priority
	for _, o := range opts {
		mustNotBeNil(o)
		o.applyTask(&m.taskOptions)
	}
	if m.on == nil {
		m.on = owner.on
	}
	if m.on != nil {
		m.delivery = &delivery{ex: m.on}
	}
	return m
}

// main is the goroutine of t. It is a frame of its own, not generic, because a
// traceback prints its receiver: that is how a straggler's stack is found, at
// no cost to the others.
//
//go:noinline
func (t *task) main() {
	if exploring {
		defer starts("task", t)()
	}
	returned := false
	defer func() {
		if !returned {
			t.rescue()
		}
	}()
	t.self.run()
	returned = true
	runtime.KeepAlive(t) // so that the receiver is still there to be printed
}

// rescue is called when the goroutine of t ends by runtime.Goexit. Nothing is left to be
// done if that was called by the handler. If a method of a user's error has called it as
// the outcome of t was made, t has not left its owner, which would wait for ever.
func (t *task) rescue() {
	if t.state.Load() == stateDone {
		return
	}
	v := verdict{err: ErrGoexit, goexit: true}
	if w, ok := t.self.(interface{ rescue(v *verdict) }); ok {
		w.rescue(&v)
		return
	}
	t.endUnrun()
	t.self.unrun(&v)
}

// enter is called by a task's goroutine before its handler.
func (t *task) enter() {
	m := t.more
	if m == nil {
		return
	}
	if m.onAbort == nil && m.timeout == 0 && m.heart == nil {
		t.move(stateRunning)
	} else {
		h := t.scope()
		if m.timeout != 0 {
			h.limitTime(m.timeout)
		}
		h.mu.Lock()
		t.move(stateRunning)
		hook := h.abortHookLocked()
		h.mu.Unlock()
		hook.start()
		if m.heart != nil {
			m.heart.start(h)
		}
	}
	t.observe()
}

// observe tells the observers that t starts.
func (t *task) observe() {
	if t.owner.observers != nil && t.more.restart == nil { // they are told of its runs
		t.more.started = clock()
		t.owner.tell(Event{Kind: EventStart, Task: t.name()})
	}
}

// leave ends t's membership of its owner: the last thing a task does.
func (t *task) leave() {
	t.owner.leave(t)
	t.retire()
}

// observed tells the observers that t has ended.
func (t *task) observed(v *verdict, sg *stopError) {
	if t.owner == nil || t.owner.observers == nil || t.more == nil || t.more.restart != nil {
		return
	}
	t.retire() // observers are no part of the handler
	t.owner.tell(t.endEvent(v, sg))
}

func (t *task) endEvent(v *verdict, sg *stopError) Event {
	e := Event{Kind: EventEnd, Task: t.name(), Duration: clock() - t.more.started, Err: v.err}
	if sg != nil {
		e.Cause = sg.cause
	}
	return e
}

// move changes t's state; moving up the list is a bug of this package.
func (t *task) move(to int32) {
	if from := t.state.Swap(to); from >= to {
		panic(fmt.Sprintf("async: illegal transition of %s: %d -> %d", t.name(), from, to))
	}
}

// public returns t's state as users see it.
func (t *task) public() State {
	sg := t.stopped()
	switch st := t.state.Load(); {
	case st == stateDone:
		return StateDone
	case sg != nil && sg != endedSignal:
		return StateAborting
	case st == stateQueued:
		return StateQueued
	default:
		return StateRunning
	}
}

// givesValue reports whether somebody is to be given what the handler of t returns
// beside an error.
func (t *task) givesValue() bool {
	switch t.kind {
	case kindRun:
		return t.owner.t.givesValue()
	case kindFuture, kindContender, kindWorker:
		return !t.self.(interface{ givesNothing() bool }).givesNothing()
	}
	return false
}
