package async

import (
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file starts tasks again that have failed; see Restart.
//
// Such a task, the whole, has no goroutine. Each run of its handler is a task of its
// own, the only one in the scope of the whole. It goes the way of any task: it
// queues for a slot, is handed to an executor, is cancelled with its owner, joins
// what it has started, and leaves. Then the goroutine that it ran on decides: the
// whole settles, or the next run is made. That is queued until its time has come, so
// a cancellation finds and withdraws it as it does any task that queues.
//
// So there is a run from the start to the end of the whole, but for the moment in
// which one goroutine decides; and there is never a second.

// A restarter starts the runs of one task, one after the other. It is used by one
// goroutine at a time: that which starts the task, then that on which a run ends.
// What that did happens before the next run, which it starts.
type restarter struct {
	policy *restartPolicy
	t      *task       // the whole
	work   restartable // what stands around it
	name   string
	each   taskOptions // of a run

	failures int             // since the last run that was healthy
	recent   []time.Duration // when, on our clock, those were that count for the limit; the last one last
	last     error           // the last of the failures
	final    bool            // that is not to be retried
	counted  *PanicError     // how many they are is attached to it
	timer    *time.Timer     // starts the run that waits for its time; guarded by the mu of the scope of t
}

// takeOver divides the options of a task: some are of each of its runs. The task
// itself needs neither a slot nor an executor.
func (r *restarter) takeOver(m *more) {
	r.each = taskOptions{onAbort: m.onAbort, heart: m.heart, hookTimeout: m.hookTimeout, on: m.on}
	m.onAbort, m.heart, m.on, m.slot = nil, nil, nil, nil
}

// start starts the first run of t, which is a member of its owner. It blocks as
// long as an executor does. As any other task, that run starts even if t is
// cancelled, unless it has to queue.
func (r *restarter) start(t *task) {
	r.t, r.name, r.work = t, t.name(), t.self.(restartable)
	s := t.scope()
	s.depth-- // a run is as deep as a task without Restart would be. Nobody has seen s yet who asks.
	n := r.newRun()
	s.add(&n.t) // it ends only with its runs
	n.t.begin()
}

// newRun returns a run that has not been started.
func (r *restarter) newRun() *run {
	s := r.t.inner.Load()
	n := &run{r: r}
	n.t.self, n.t.kind, n.t.owner = n, kindRun, s
	m := new(more)
	if s.limit != nil {
		m = s.limit.newMoreWithSlot(&n.t, s.depth)
	}
	options := taskOption(func(o *taskOptions) {
		*o = r.each
		o.name, o.priority = r.name, s.priority
		if o.heart != nil {
			o.heart = &heart{every: o.heart.every}
		}
	})
	n.t.equip(m.set(s, []TaskOption{options}), nil)
	return n
}

// next makes the next run and starts it after d, unless the task is cancelled by
// then. The timer is set under the lock under which a cancellation looks for the
// run: so whoever withdraws that finds the timer.
func (r *restarter) next(d time.Duration) {
	n, s := r.newRun(), r.t.inner.Load()
	if n.t.more.delivery == nil {
		n.t.more.delivery = new(delivery) // to its own goroutine, when it is time
	}
	s.mu.Lock()
	s.linkLocked(&n.t)
	r.timer = time.AfterFunc(d, n.start)
	s.mu.Unlock()
	// A cancellation notes its cause and then looks for runs; we have made the run
	// findable and then look for a cause. One of the two sees the other.
	n.t.isWanted()
}

// whole returns the task that t is a run of; t itself if it is none.
func (t *task) whole() *task {
	if t.kind == kindRun {
		return t.owner.t
	}
	return t
}

// enter begins the whole, before the handler is called for the first time.
func (r *restarter) enter() {
	if r.t.state.Load() != stateQueued {
		return
	}
	r.t.move(stateRunning)
	if d := r.t.more.timeout; d != 0 {
		r.t.scope().limitTime(d)
	}
}

// ended is called when n, and all that it started, has ended with v: it settles the
// task or has it run again. valid: the handler has returned a value and no error.
func (r *restarter) ended(n *run, v *verdict, valid bool) {
	sg := r.t.stopped()
	switch {
	case n.t.exit == byPardon: // v says only what else went wrong
		r.t.exit = byPardon
	case v.err == nil:
	case n.judged && !n.again: // said when it happened, and perhaps why the task is cancelled now
		r.giveUp(v)
	case sg != nil:
		r.stoppedWith(sg, v)
	case n.goesOn(v.err):
		r.work.drop(valid)
		d, bad := r.wait()
		if bad == nil {
			r.next(d)
			return
		}
		valid = false
		r.failWith(bad, v)
	default:
		r.giveUp(v)
	}
	if r.t.state.Load() == stateQueued {
		r.t.owner.recordSkipped() // its handler was never called
	}
	r.t.endUnrun()
	r.work.settleRuns(v, valid)
}

// count counts a failure, after a run of that length, and reports whether there may
// be another run.
func (r *restarter) count(err error, took time.Duration) bool {
	p, now := r.policy, clock()
	if took >= p.healthy {
		r.failures, r.recent = 0, nil
	}
	r.failures++
	r.last, r.final = err, isFinal(err)
	if r.final {
		return false
	}
	if p.within <= 0 {
		return true
	}
	old := 0
	for old < len(r.recent) && between(r.recent[old], now) > p.within {
		old++
	}
	r.recent = append(r.recent[:0], r.recent[old:]...)
	r.recent = append(r.recent, now)
	return len(r.recent) < p.attempts
}

// wait returns how long to wait before the next run, or what went wrong in the
// interval, which is a user's.
func (r *restarter) wait() (d time.Duration, bad error) {
	bad = guard("interval of "+r.name, func() { d = r.policy.in(r.failures) })
	return max(d, minInterval), bad
}

// giveUp makes v, which says how the last run has failed, the outcome of the task.
func (r *restarter) giveUp(v *verdict) {
	v.echo, v.cause = false, nil
	f, bare := v.err.(*finalError)
	switch {
	case v.panic != nil:
		r.attachCount(v.panic)
	case bare:
		v.err = f.err
	case !r.final:
		e := r.restartError()
		e.Err = v.err
		v.err = e
	}
}

// attachCount attaches to p, with which the last run has ended, how many failures
// there were.
func (r *restarter) attachCount(p *PanicError) {
	if !r.final && r.counted != p {
		r.counted = p
		p.attach([]error{r.restartError()}, 0)
	}
}

// restartError returns the error of a task that has failed too often.
func (r *restarter) restartError() *RestartError {
	return &RestartError{Failures: r.failures, task: r.name, within: r.policy.within, recent: len(r.recent)}
}

// stoppedWith makes v, which says how the last run has ended, the outcome of a task
// that was cancelled with sg.
func (r *restarter) stoppedWith(sg *stopError, v *verdict) {
	if v.panic != nil {
		return
	}
	if !tally.Same(v.cause, sg.cause) { // the run knew nothing of it: it had ended, or was stopped by its Heartbeat
		v.err, v.cause, v.echo = sg.beside(r.t, v.err), sg.cause, false
	}
	if v.echo && r.failures > 0 {
		v.err = &RestartError{Failures: r.failures, Err: r.last, task: r.name, why: v.err}
	}
}

// failWith makes v the outcome of a task whose interval has panicked or called
// Goexit after a failure.
func (r *restarter) failWith(bad error, v *verdict) {
	last := v.err
	*v = asVerdict(bad)
	if v.panic != nil {
		v.panic.attach([]error{last}, 0)
		return
	}
	v.goexit = true
	v.err = joined(r.t, []error{bad, last}, 0)
}
