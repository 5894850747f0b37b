package items

import "github.com/ambit-go/ambit/async/internal/tree"

// This file is the engine of what works on many items: workers, each a task
// that does one item after another. An item has a worker's context to itself
// while it runs. If nothing of that is left, the worker goes on with the next
// item. If something is, the worker ends like any task, and another that
// starts afresh goes on in its place, on its goroutine: its heir. So small
// items cost neither a goroutine nor an allocation each, and yet what an item
// starts ends with it.

// Func returns the user's function, for its name.
func (w *Worker[E]) Func() any { return w.crew.Func }

// Future returns nil: nobody can await a worker.
func (w *Worker[E]) Future() *tree.Future { return nil }

// GivesNothing reports that there is nothing in the values of items, as in ForEach.
func (w *Worker[E]) GivesNothing() bool { return w.crew.Nothing }

// Run is the body of the worker's goroutine.
func (w *Worker[E]) Run() {
	w.turn()
	if w.inherits {
		return // to the loop below, of the first worker on this goroutine
	}
	for h := w.takeHeir(); h != nil; h = h.takeHeir() {
		h.Task.Main()
	}
}

func (w *Worker[E]) takeHeir() *Worker[E] {
	h := w.heir
	w.heir = nil // so that a long line of heirs can be collected
	return h
}

// turn does items until there are no more, or until one has left something.
func (w *Worker[E]) turn() {
	defer w.finish() // also on Goexit
	if !w.busy && !w.accept(w.crew.Next(w, nil)) {
		return
	}
	w.Task.Enter()
	for !w.items() {
		tree.NilPanic(&w.Task.Exit)
		if !Untouched(&w.Task) || !w.proceed() {
			return
		}
	}
}

// items does one item after another and reports true when the turn is over. One
// that panics is recovered and reported as false: a defer for many items costs
// less than one for each.
func (w *Worker[E]) items() (over bool) {
	defer func() { tree.Caught(&w.Task, recover(), &w.Task.Exit, &w.Err) }()
	many := w.crew.DoMany
	if w.Task.More != nil {
		many = nil
	}
	for {
		w.Task.Exit = tree.ByGoexit
		if many == nil {
			w.Err = w.crew.Do(&w.Task, w.Item)
		} else if many(w) {
			w.busy = false
			return true
		}
		w.Task.Exit = tree.ByReturn
		if w.Err != nil {
			tree.StoppedByNow(&w.Task) // then it is not Untouched
		}
		if !Untouched(&w.Task) || !w.proceed() {
			return true
		}
	}
}

// proceed tells how the item has ended and goes on to the next; false if there
// is none.
func (w *Worker[E]) proceed() bool {
	t := &w.Task
	if t.More != nil {
		tree.HandlerReturned(t)
	}
	w.v = tree.Verdict{}
	w.v.Leaf(t, w.Err, nil)
	if t.Owner.Observers != nil { // not observed: that gives up the slot, which the next item needs
		tree.TellObservers(t.Owner, tree.EndEvent(t, &w.v, nil))
	}
	if !w.accept(w.crew.Next(w, &w.v)) {
		return false
	}
	tree.TellStart(t)
	return true
}

func (w *Worker[E]) accept(item E, ok bool) bool {
	w.Item, w.busy = item, ok
	return ok
}

// finish ends the worker. If its item has not been told of yet, that has left
// something, or called Goexit. The goroutine goes on with the next item and the
// worker is concluded beside it if it has to wait, for what it waits for may
// need the place of an executor that the goroutine has.
func (w *Worker[E]) finish() {
	t, c := &w.Task, w.crew
	defer t.Rescue()
	if t.More != nil {
		tree.HandlerReturned(t) // here: it may be concluded on another goroutine
	}
	switch {
	case !w.busy:
		w.quit()
	case t.Exit != tree.ByGoexit && c.Scope.Limit == nil:
		w.heir = c.adopt()
		if leftRunning(t) {
			w.handed = true
			go w.concludeBeside(false)
		} else {
			w.conclude(false)
		}
	case c.Scope.On != nil:
		w.handed = true
		go w.concludeBeside(true)
	default:
		w.conclude(true)
	}
}

// quit ends a worker that has no item.
func (w *Worker[E]) quit() {
	t := &w.Task
	t.Exit = tree.ByReturn
	var v tree.Verdict
	if t.End(nil, &v); v.Err != nil { // of a bare goroutine with the context of an item that has ended
		t.Owner.ChildFailed(t, &v)
	}
	w.leave()
}

// concludeBeside is conclude as the body of a goroutine.
func (w *Worker[E]) concludeBeside(succeeded bool) {
	if tree.Exploring {
		defer tree.Starts("conclude", &w.Task)()
	}
	w.conclude(succeeded)
}

// conclude joins what the item has left, tells how it ended, and starts a new
// worker for the next if there is to be one.
func (w *Worker[E]) conclude(succeeded bool) {
	t, c := &w.Task, w.crew
	if succeeded && leftRunning(t) { // the limit is one of calls
		c.succeed()
		succeeded = false
	}
	w.v = tree.Verdict{}
	stop := t.End(w.Err, &w.v)
	tree.TellEnd(t, &w.v, stop)
	c.Tell(w.Item, &w.v)
	if succeeded {
		c.succeed()
	}
	w.leave()
}

// leave ends w's membership. The goroutine that waits for the call is woken before
// the slot is given up, so that it gets the slot.
func (w *Worker[E]) leave() {
	t, c := &w.Task, w.crew
	t.Move(tree.StateDone)
	t.Owner.Leave(t)
	c.WorkerLeft()
	t.Retire()
}

// Rescue ends a worker whose goroutine has ended as the outcome of its item was made.
func (w *Worker[E]) Rescue(v *tree.Verdict) {
	if w.handed {
		return
	}
	w.Task.EndUnrun()
	if w.busy {
		w.crew.Tell(w.Item, v)
	}
	w.crew.mu.Lock()
	w.crew.seeking--
	w.crew.mu.Unlock()
	if h := w.takeHeir(); h != nil {
		h.inherits = false
		go h.Task.Main()
	}
	w.leave()
}

// Unrun ends a worker that never ran. If it was refused, its item is left to
// those that were not; if there are none the item is refused, and another
// worker tries the rest.
func (w *Worker[E]) Unrun(v *tree.Verdict) {
	defer w.leave()
	c := w.crew
	if !w.busy {
		c.unrun(v)
		return
	}
	c.mu.Lock()
	c.seeking--
	if !v.Echo && c.seeking > 0 {
		c.back = append(c.back, w.Item)
		c.mu.Unlock()
		return
	}
	var back []E
	if c.seeking == 0 && v.Echo {
		back, c.back = c.back, nil
	} else if c.seeking == 0 {
		c.seeking++ // for the worker that tries the rest
	}
	c.mu.Unlock()
	c.Tell(w.Item, v)
	for _, item := range back {
		c.Tell(item, v)
	}
	if !v.Echo {
		c.Live.Add(1)
		go func() { // not here: it may be refused, too
			if tree.Exploring {
				defer tree.Starts("succeed", c)()
			}
			c.succeed()
			c.WorkerLeft()
		}()
	}
}

// Untouched reports whether t is as if nothing had been done with its context:
// it can be given to another item.
func Untouched(t *tree.Task) bool {
	if t.Owner.Why.Load() != nil { // set before an item can have seen it
		return false
	}
	h := t.Inner.Load()
	if h == nil {
		return true
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return tree.UnusedLocked(h, nil) && h.Why.Load() == nil
}

// leftRunning reports whether t has to wait for something when it ends.
func leftRunning(t *tree.Task) bool {
	h := t.Inner.Load()
	if h == nil {
		return false
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.Live > 0 || h.Exits != nil
}
