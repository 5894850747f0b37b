package async

import "time"

// This file is one run of a task with Restart, and what such a task can do. When
// there is another run is decided in restarter.go.

// A run is one call of the handler of a task with Restart.
type run struct {
	t     task
	r     *restarter
	err   error         // what the handler has returned
	began time.Duration // on our clock; 0 if it has not
	took  time.Duration // from then to its end or, if the handler has failed, to that of the handler

	judged bool // its failure is counted
	again  bool // there will be another run; only if it is judged
}

// start is called when it is time for the run.
func (n *run) start() {
	if exploring {
		defer starts("restart", n)()
	}
	n.t.begin()
}

func (n *run) fn() any         { return n.r.t.self.fn() }
func (n *run) future() *future { return nil }

// run is the body of the goroutine of a run.
func (n *run) run() {
	defer n.finish() // also on Goexit
	n.call()
	nilPanic(&n.t.exit)
	if n.t.exit == byPanic {
		n.panicked(n.err.(*PanicError))
	}
}

func (n *run) call() {
	defer func() { caught(&n.t, recover(), &n.t.exit, &n.err) }()
	n.r.enter()
	n.began = clock()
	n.t.enter()
	n.err = n.r.work.runOnce(&n.t)
	n.t.exit = byReturn
}

// panicked has those told of a panic that will not be retried who are told of one
// before what the handler has started has ended.
func (n *run) panicked(p *PanicError) {
	if h := n.t.inner.Load(); h != nil {
		h.returned() // no abort hook for its own panic
	}
	n.took = clock() - n.began
	switch {
	case n.r.t.stopped() != nil:
	case n.goesOn(p):
		return
	default:
		n.r.attachCount(p)
	}
	n.r.work.panicked(&n.t, p)
}

// finish joins what the handler has started, and ends the run.
func (n *run) finish() {
	t := &n.t
	valid := t.exit == byReturn && n.err == nil
	if !valid && n.took == 0 {
		n.took = clock() - n.began
	}
	own := n.err
	if t.exit == byPardon {
		own = nil
	}
	var v verdict
	sg := t.end(own, &v)
	if valid {
		n.took = clock() - n.began
	}
	if v.err == nil && n.missedBeat(sg) {
		v = verdict{err: sg.asError(), cause: sg.cause, alone: true}
	}
	told := v
	if t.exit == byPardon {
		told.err = n.err
	}
	t.observed(&told, sg)
	t.move(stateDone)
	t.leave()
	n.r.ended(n, &v, valid)
}

// missedBeat reports that the run, which was cancelled with sg, was so by its own
// Heartbeat. Then it has failed, even if the handler has returned nil, as a loop
// does that ends when its ctx does.
func (n *run) missedBeat(sg *stopError) bool {
	if sg == nil || n.t.more.heart == nil || n.r.t.stopped() != nil {
		return false
	}
	_, missed := sg.cause.(*WatchdogError)
	return missed
}

// unrun ends a run that its handler was not called for, because the task was
// cancelled or the executor has refused it.
func (n *run) unrun(v *verdict) {
	if !v.echo {
		n.t.owner.tell(Event{Kind: EventEnd, Task: n.t.name(), Err: v.err})
	}
	n.t.move(stateDone)
	n.t.leave()
	s := n.r.t.inner.Load()
	s.mu.Lock()
	timer := n.r.timer
	s.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	n.r.ended(n, v, false)
}

// goesOn counts the failure of n, once, and reports whether the handler is to be
// called again.
func (n *run) goesOn(err error) bool {
	if !n.judged {
		n.judged, n.again = true, n.r.count(err, n.took)
	}
	return n.again
}

// restartable is a task that may have been started with Restart.
type restartable interface {
	runOnce(t *task) error             // calls the handler for the run t
	panicked(t *task, p *PanicError)   // the handler has panicked in its last run, which has not ended yet
	drop(succeeded bool)               // a run has failed, and its value is nobody's
	settleRuns(v *verdict, valid bool) // it ends with v; valid: the handler has returned a value and no error
}

func (g *goTask) runOnce(t *task) error { return g.handler(t) }
func (g *goTask) drop(bool)             {}

func (g *goTask) settleRuns(v *verdict, _ bool) {
	g.tell(v)
	g.leave(v)
}

func (f *Future[T]) runOnce(t *task) (err error) {
	f.value, err = f.handler(t)
	return err
}

func (f *Future[T]) panicked(*task, *PanicError) {}

func (f *Future[T]) drop(succeeded bool) {
	value := f.value
	f.value = *new(T)
	if succeeded {
		f.discard(value)
	}
}

func (f *Future[T]) settleRuns(v *verdict, valid bool) {
	f.conclude(v, valid)
}
