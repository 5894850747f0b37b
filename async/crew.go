package async

import (
	"context"
	"time"
)

// This file is the engine of forkjoin.go: workers, each a task that does one
// item after another. An item has a worker's context to itself while it runs.
// If it has used that for nothing that is left, the worker goes on with the
// next item; if it has, the worker ends like any task and a new one takes
// over. So small items cost neither a goroutine nor an allocation each, and
// yet what an item starts ends with it.

// A crew is the workers of one call.
type crew struct {
	s       *scope                                 // whose tasks they are
	fn      any                                    // the user's function, for names
	do      func(ctx context.Context, i int) error // runs item i
	doMany  func(w *worker) (over bool)            // does what items does as long as all goes well; may be nil
	done    func(i int, v *verdict, free *worker)  // is told how item i ended, and who is free now; nil: nobody
	next    func(w *worker) (i int, ok bool)       // gives w something to do, which may block; if w is nil, somebody new
	gone    func()                                 // is told when a worker has left; may be nil
	timeout time.Duration                          // of an item; 0: none
}

// A worker does items. Only its goroutine uses what is not its task's.
type worker struct {
	t    task
	crew *crew
	i    int // the item
	err  error
	left error   // what an item that called Goexit in a scope of its own has left to tell
	v    verdict // how the item ended; here, because it is told through a function value
	w    *waiter // of an idle worker; see stream
}

func (w *worker) fn() any         { return w.crew.fn }
func (w *worker) future() *future { return nil }

// start has w begin with item i.
func (c *crew) start(w *worker, i int) {
	w.crew, w.i = c, i
	w.t.self, w.t.kind = w, kindWorker
	w.t.start(c.s, nil, nil)
}

// run is the body of the worker's goroutine.
func (w *worker) run() {
	defer w.finish() // also on Goexit
	w.t.enter()
	for !w.items() {
		nilPanic(&w.t, &w.t.exit, &w.err)
		if !w.t.spotless() || !w.proceed() {
			return
		}
	}
}

// items does one item after another and reports true when w is to end. One
// that panics is recovered and reported as false: a defer for many items costs
// less than one for each.
func (w *worker) items() (over bool) {
	defer func() { caught(&w.t, recover(), &w.t.exit, &w.err) }()
	many := w.crew.doMany
	if w.t.more != nil || w.crew.timeout != 0 {
		many = nil
	}
	for {
		w.t.exit = byGoexit
		switch {
		case many != nil:
			if many(w) {
				w.i = -1
				return true
			}
		case w.crew.timeout != 0:
			w.err = w.timed()
		default:
			w.err = w.crew.do(&w.t, w.i)
		}
		w.t.exit = byReturn
		if !w.t.spotless() || !w.proceed() {
			return true
		}
	}
}

// proceed tells of the item that has ended and goes on to the next; false if
// there is none.
func (w *worker) proceed() bool {
	w.v = verdict{}
	w.v.leaf(&w.t, w.err, nil)
	if w.t.more != nil {
		w.t.observed(&w.v, nil)
	}
	w.crew.done(w.i, &w.v, w)
	i, ok := w.crew.next(w)
	if !ok {
		w.i = -1
		return false
	}
	w.i = i
	if w.t.more != nil {
		w.t.observe()
	}
	return true
}

// timed runs the item in a scope with a time limit.
func (w *worker) timed() error {
	o := &scopeOptions{timeout: w.crew.timeout, exited: func(err error) { w.left = err }}
	o.name = funcName(w.crew.fn)
	return runBody(&w.t, func(ctx context.Context) error { return w.crew.do(ctx, w.i) }, o, false)
}

// finish ends the worker. If its last item has not been told of yet, it has
// left something, or called Goexit: it is joined first, and somebody else does
// the rest.
func (w *worker) finish() {
	t := &w.t
	if w.i >= 0 {
		w.v = verdict{}
		sg := t.end(w.err, &w.v)
		if w.left != nil {
			w.v.err = w.left
		}
		t.observed(&w.v, sg)
		w.crew.done(w.i, &w.v, nil)
		if i, ok := w.crew.next(nil); ok {
			w.crew.start(new(worker), i)
		}
	} else {
		t.exit = byReturn
		var v verdict
		if t.end(nil, &v); v.err != nil { // of a bare goroutine with the context of an item that has ended
			t.owner.childFailed(t, &v)
		}
	}
	w.leave()
}

// leave ends w's membership. Whoever waits for the call is seen to before the
// slot is given up, so that it gets that.
func (w *worker) leave() {
	t := &w.t
	t.move(stateDone)
	t.owner.leave(t)
	if w.crew.gone != nil {
		w.crew.gone()
	}
	t.retire()
}

// unrun ends a worker that never ran, so its item was not begun. If it was
// refused, somebody else tries the rest.
func (w *worker) unrun(v *verdict) {
	if v.echo {
		v = &verdict{err: errNotBegun}
	}
	w.crew.done(w.i, v, nil)
	if i, ok := w.crew.next(nil); ok {
		go w.crew.start(new(worker), i) // not here: it may be refused, too
	}
	w.leave()
}

// spotless reports whether t is as if nothing had been done with its context:
// it can be given to another item.
func (t *task) spotless() bool {
	if t.owner.sig.Load() != nil { // set before an item can have seen it
		return false
	}
	h := t.inner.Load()
	if h == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unusedLocked(nil) && h.sig.Load() == nil
}
