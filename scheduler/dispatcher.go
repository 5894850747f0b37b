package scheduler

import "context"

// A dispatcher has workers drained on goroutines of the pool. A function that the pool runs is not
// bound to a worker: it takes whichever has waited longest. The next step is decided by the
// runQueue. The pool is never called with the lock held: it may run a task at once, which schedules
// on another worker.
type dispatcher struct {
	ex  Executor
	try func(task func()) bool // nil: the pool has no TryExecute
	run func()                 // serve, as a value that was made once

	mu     mutex // guards what follows; never held with a worker's mu
	q      runQueue
	closed bool          // no worker may come
	unused chan struct{} // closed when nobody uses the pool; nil if nobody waits

	workers     map[drainer]struct{}
	unwatchPool func() bool // ends the look at the pool's context; nil if there is none
}

func (d *dispatcher) init(ex Executor) {
	d.ex, d.workers = ex, make(map[drainer]struct{})
	if t, ok := ex.(tryExecutor); ok {
		d.try = t.TryExecute
	}
	d.run = d.serve
	_, d.q.inline = ex.(inline)
	d.q.asks = d.try != nil && !d.q.inline
}

// do unlocks d.mu and does what is to be done, for w if it is an offer.
func (d *dispatcher) do(todo work, w *seat) {
	if d.q.using == 0 && d.unused != nil {
		close(d.unused)
		d.unused = nil
	}
	d.mu.Unlock()
	if todo == 0 {
		return
	}
	if todo&toFeed != 0 {
		go d.feed()
	}
	if todo&toStandIn != 0 {
		go d.standIn()
	}
	if todo&toServe != 0 {
		d.serve()
	}
	if todo&toOffer != 0 {
		d.offer(w)
	}
}

// makeReady is called for a worker that was idle and has something to do. Its caller
// has set active, so it is called once until the worker is idle again. No lock is held.
func (d *dispatcher) makeReady(w *seat) {
	d.mu.Lock()
	d.do(d.q.add(w), w)
}

// offer makes a submission for w that does not block.
func (d *dispatcher) offer(w *seat) {
	taken := false
	defer func() { // also if the pool panics: nobody is wedged for that
		d.mu.Lock()
		d.do(d.q.offered(w, taken), nil)
	}()
	taken = d.try(d.run)
}

// feed is the feeder. It makes submissions until no more are wanted.
func (d *dispatcher) feed() {
	// If the pool runs tasks on the goroutine that submits them, one of them may end
	// this goroutine, by Goexit. Another feeder goes on then.
	defer func() {
		d.mu.Lock()
		d.do(d.q.fed(), nil)
	}()
	for {
		d.mu.Lock()
		w := d.q.submit()
		d.mu.Unlock()
		if w == nil {
			return
		}
		d.submit(w)
	}
}

// submit makes a submission for w that may block.
func (d *dispatcher) submit(w *seat) {
	var err error
	defer func() { // also if a task that the pool runs here calls Goexit
		d.mu.Lock()
		alone, todo := d.q.submitted(w, err != nil)
		if d.do(todo, nil); alone {
			w.refused(err)
		}
	}()
	err = d.ex.Execute(d.run)
}

// serve is what the pool runs.
func (d *dispatcher) serve() {
	d.mu.Lock()
	w := d.q.begin()
	d.mu.Unlock()
	d.goThrough(w, false)
}

// standIn is a goroutine that stands in for one that is lent.
func (d *dispatcher) standIn() {
	defer func() {
		d.mu.Lock()
		d.do(d.q.stoodIn(), nil)
	}()
	d.goThrough(d.next(), true)
}

// inlineTicks is how many runs of periodic tasks keep a goroutine that has scheduled
// something on Inline. Only they can keep it for ever although each of them ends: while one
// runs the next is due.
const inlineTicks = 64

// goThrough drains w and then the workers in the line, until there is none, or the goroutine
// is to be let go after a turn. After a worker's share it offers the goroutine back; if the
// pool cannot take the rest now, it goes on with the next worker.
func (d *dispatcher) goThrough(w *seat, standsIn bool) {
	clean := w == nil // no worker's task has taken this goroutine with it
	defer func() {
		if !clean {
			d.died()
		}
	}()
	for ticks := 0; w != nil; {
		more, n := w.onPool()
		switch ticks += n; {
		case d.q.inline && ticks >= inlineTicks, standsIn && d.isBack():
			if more {
				d.backInLine(w)
			}
			return // as if it had died: the rest is for another one
		case more:
			w = d.handBack(w)
		default:
			w = d.next()
		}
	}
	clean = true
}

func (d *dispatcher) next() *seat {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.q.next()
}

// handBack puts w, which has had its share, at the end of the line and offers the goroutine
// back to the pool. It returns the worker to go on with, nil for none.
func (d *dispatcher) handBack(w *seat) *seat {
	d.mu.Lock()
	if !d.q.handBack(w) {
		defer d.mu.Unlock()
		return d.q.next()
	}
	d.mu.Unlock()
	return d.offerBack()
}

func (d *dispatcher) offerBack() (next *seat) {
	taken, asked := false, false
	defer func() {
		d.mu.Lock()
		if asked {
			next = d.q.handedBack(taken)
		} else { // the pool has panicked
			d.q.answered(false)
		}
		d.do(0, nil)
	}()
	taken = d.try(d.run)
	asked = true
	return nil
}

// died is called when a panic or Goexit takes a goroutine of the pool.
func (d *dispatcher) died() {
	d.mu.Lock()
	d.do(d.q.died(), nil)
}

// backInLine puts w, whose goroutine is about to die, at the end of the line. died,
// which follows on this goroutine, sees to it that another one comes.
func (d *dispatcher) backInLine(w *seat) {
	d.mu.Lock()
	d.q.ready.add(&w.turn)
	d.mu.Unlock()
}

func (d *dispatcher) lend() {
	d.mu.Lock()
	d.do(d.q.lend(), nil)
}

func (d *dispatcher) takeBack() {
	d.mu.Lock()
	d.q.takeBack()
	d.mu.Unlock()
}

func (d *dispatcher) isBack() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.q.isBack()
}

// add registers a worker; false if d is closed.
func (d *dispatcher) add(w drainer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.workers[w] = struct{}{}
	return true
}

// remove forgets a worker, which has ended.
func (d *dispatcher) remove(w *seat) {
	d.mu.Lock()
	delete(d.workers, w.drainer)
	d.q.remove(w)
	d.noteOverLocked()
	d.mu.Unlock()
}

// close refuses new workers.
func (d *dispatcher) close() {
	d.mu.Lock()
	d.closed = true
	d.noteOverLocked()
	d.mu.Unlock()
}

// noteOverLocked looks no longer at the pool's end if nobody is left that has to be told:
// until then a worker that drains may still wait for the pool.
func (d *dispatcher) noteOverLocked() {
	d.q.over = d.closed && len(d.workers) == 0
	if d.q.over && d.unwatchPool != nil {
		d.unwatchPool()
	}
}

// waitUnused blocks until no goroutine calls the pool, or returns the cause of
// ctx when that is done before.
func (d *dispatcher) waitUnused(ctx context.Context) error {
	d.mu.Lock()
	if d.q.using == 0 {
		d.mu.Unlock()
		return nil
	}
	if d.unused == nil {
		d.unused = make(chan struct{})
	}
	unused := d.unused
	d.mu.Unlock()
	return waitFor(unused, ctx)
}

// waitFor blocks until over is closed, or returns the cause of ctx when that is done
// before. If both have happened when it looks, over wins.
func waitFor(over <-chan struct{}, ctx context.Context) error {
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-over:
		return nil
	default:
		return context.Cause(ctx)
	}
}
