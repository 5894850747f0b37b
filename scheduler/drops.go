package scheduler

// A reason is what becomes of tasks that will not run, and why.
type reason struct {
	outcome State
	cause   error
}

// drops are tasks that will not run, for one reason.
type drops struct {
	o *workerOptions // of their worker
	reason
	watched []drop
}

// A drop is a task that will not run: its future and context are to be told.
type drop struct {
	future *ticket
	ctx    *taskContext // of a periodic task
}

// addLocked forgets what n has captured, and remembers n if anybody is to be
// told. A nil n is a post, which nobody watches. n was claimed, so nobody else
// writes to it; only its context may be taken by the drain at the same time.
func (d *drops) addLocked(n *node) {
	if n == nil {
		return
	}
	n.forget()
	one := drop{future: n.future}
	n.future = nil
	if n.ctx.Load() != nil { // most have none, and then nothing need be written
		one.ctx = n.ctx.Swap(nil)
	}
	if one.future != nil || one.ctx != nil || d.o.observer != nil {
		d.watched = append(d.watched, one)
	}
}

// tell tells of the tasks. No lock is held.
func (d *drops) tell() {
	for _, one := range d.watched {
		if one.ctx != nil {
			one.ctx.cancel(d.cause)
		}
		if one.future != nil {
			one.future.dropped(d.reason)
		}
	}
	if d.o.observer == nil {
		return
	}
	for range d.watched { // last, because it may panic
		d.o.observer(Event{Worker: d.o.name, Outcome: d.outcome, Err: d.cause})
	}
}
