package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file starts tasks again that have failed.
//
// Such a task is a loop over runs on the goroutine of the task. Each run is a scope
// inside the task. A handler that calls Goexit takes the goroutine along: then the loop
// goes on on another one.

// restartable is a task that may be started with Restart.
type restartable interface {
	work
	givesNothing() bool
	// runOnce calls the handler for the run t.
	runOnce(t *task) error
	// drop is called when a run has failed. valid: the handler has returned a value, which
	// is nobody's.
	drop(valid bool)
	// endRuns ends the task as if its handler had ended so.
	endRuns(exit exitKind, err error, valid bool)
}

// A restarter runs a task with Restart: it stands before what stands around a task. One
// goroutine at a time uses it. What that did happens before the next goroutine, which
// it starts.
type restarter struct {
	RestartPolicy
	restartable
	t    *task
	each taskOptions // what is said of each run

	failures int             // since the last run that was healthy
	recent   []time.Duration // when, on our clock, those were that count for Attempts; the last one last
	last     error           // the last of the failures
	pause    time.Duration   // until the next run

	over  bool // there is no other run; what follows says how the task ends
	exit  exitKind
	err   error
	valid bool // the handler of the last run has returned a value
}

// standBefore has r run t, whose options are those of m.
func (r *restarter) standBefore(t *task, m *more) {
	r.t, r.restartable, t.self = t, t.self.(restartable), r
	r.each = taskOptions{onAbort: m.onAbort, onCancel: m.onCancel, hookTimeout: m.hookTimeout}
	if h := m.added().heart; h != nil {
		r.each.hang().heart, m.hung.heart = h, nil
	}
	m.onAbort, m.onCancel = nil, nil
}

// run is the body of the goroutine of the task, or of one after it.
func (r *restarter) run() {
	defer r.leave() // also on Goexit
	if r.t.state.Load() == stateQueued {
		r.t.enter()
	}
	for !r.over {
		r.once()
		r.wait()
	}
}

// leave is called as the goroutine comes to its end: with the task, or with a handler
// that has called Goexit.
func (r *restarter) leave() {
	if !r.over {
		go r.startAnew()
		return
	}
	defer func() {
		if r.t.state.Load() != stateDone { // see task.rescue
			r.t.endUnrun()
			r.unrun(&verdict{err: ErrGoexit, goexit: true})
		}
	}()
	r.endRuns(r.exit, r.err, r.valid)
}

// rescue has nothing to do: leave has done it.
func (r *restarter) rescue(*verdict) {}

// wait waits until it is time for the next run, or the task is stopped.
func (r *restarter) wait() {
	if r.over {
		return
	}
	_ = Sleep(r.t, r.pause)
	if sg := r.t.stopped(); sg != nil {
		r.settle(byReturn, r.restartError(sg.asError(), r.last))
	}
}

// once calls the handler, and joins what that has started. It does not come back if the
// handler calls Goexit.
func (r *restarter) once() {
	s := newBody(r.t.scope(), nil, &scopeOptions{name: r.t.name(), hookTimeout: r.each.hookTimeout}, false)
	s.t.kind = kindRun
	s.t.more.onAbort, s.t.more.onCancel = r.each.onAbort, r.each.onCancel
	if h := r.each.added().heart; h != nil {
		s.t.more.hang().heart = h.again()
	}
	enroll(s) // what it stands in ends only after it
	tellStart(s.t)
	n := bodyRun{s: s}
	began := clock()
	defer func() { r.judge(&n, clock()-began) }() // also on Goexit
	r.call(&n)
	nilPanic(&n.exit)
}

// call calls the handler. A panic is recovered here; Goexit is not.
func (r *restarter) call(n *bodyRun) {
	defer func() { caught(n.s.t, recover(), &n.exit, &n.err) }()
	if h := n.s.t.more.added().heart; h != nil {
		h.start(n.s)
	}
	n.err = r.runOnce(n.s.t)
	n.exit = byReturn
}

// judge ends the run n, whose handler took so long, and decides whether there is
// another one.
func (r *restarter) judge(n *bodyRun, took time.Duration) {
	valid := n.exit == byReturn && n.err == nil
	if n.exit == byGoexit {
		n.err = ErrGoexit
	}
	judged := false
	defer func() {
		if !judged { // a method of a user's error has called Goexit
			n.rescue()
			r.settle(byGoexit, ErrGoexit)
		}
	}()
	var v verdict
	n.s.finish(n.exit, n.err, &v)
	own := r.t.stopped()
	if sg := n.s.signal(); v.err == nil && own == nil && sg != nil && missedBeat(n, sg) {
		v = verdict{err: sg.asError(), cause: sg.cause}
	}
	n.leave(&v)
	r.valid = valid
	switch {
	case v.err == nil:
		r.settle(byReturn, nil)
	case own != nil:
		r.stop(own, n.exit, &v)
	case r.retry(v.err, took):
		r.drop(valid)
		r.valid = false
		r.plan()
	default:
		r.giveUp(&v)
	}
	judged = true
}

// missedBeat reports that the run, which was cancelled with sg, was so by its own
// Heartbeat. Then it has failed, even if the handler has returned nil, as a loop does
// that ends when its ctx does.
func missedBeat(r *bodyRun, sg *stopError) bool {
	_, missed := sg.cause.(*WatchdogError)
	return missed && r.s.t.more.added().heart != nil
}

// retry counts a failure, of a run whose handler took so long, and reports whether there
// may be another run.
func (r *restarter) retry(err error, took time.Duration) bool {
	if took >= r.Healthy {
		r.failures, r.recent = 0, nil
	}
	r.failures++
	r.last = err
	if isFinal(err) {
		return false
	}
	if r.Within < 0 {
		return true
	}
	now, old := clock(), 0
	for old < len(r.recent) && between(r.recent[old], now) > r.Within {
		old++
	}
	r.recent = append(r.recent[:0], r.recent[old:]...)
	r.recent = append(r.recent, now)
	return len(r.recent) < r.Attempts
}

// plan asks how long to wait before the next run. The interval is a user's: if it panics
// or calls Goexit that ends the task, with the failure beside it.
func (r *restarter) plan() {
	var d time.Duration
	bad := guard("interval of "+r.t.name(), func() { d = r.Interval(r.failures) })
	r.pause = max(d, minInterval)
	switch bad.(type) {
	case nil:
	case *PanicError:
		r.recordBeside(r.last)
		r.settle(byPanic, bad)
	default:
		r.recordBeside(r.last)
		r.settle(byReturn, bad)
	}
}

// settle says how the task ends.
func (r *restarter) settle(exit exitKind, err error) { r.over, r.exit, r.err = true, exit, err }

// recordBeside has err told beside the outcome of the task.
func (r *restarter) recordBeside(err error) {
	r.t.scope().record(&tally.Fact{Err: err, GoesOn: true})
}

// stop makes v, the outcome of a run, that of the task, which was stopped with sg. exit
// is how the handler has ended.
func (r *restarter) stop(sg *stopError, exit exitKind, v *verdict) {
	err := v.err
	if e := v.listed(); e != nil && tally.Same(e.cause, sg.cause) && e.isOne() {
		err = e.errs[0] // the task says the cause itself
	}
	switch {
	case v.panic != nil:
		r.settle(byPanic, v.panic.asError())
	case exit == byGoexit && tally.Same(err, ErrGoexit):
		r.settle(byGoexit, err)
	case v.echo && tally.Same(v.cause, sg.cause) && r.failures > 0:
		r.settle(byReturn, r.restartError(v.err, r.last))
	default:
		r.settle(byReturn, err)
	}
}

// giveUp makes v, which says how the last run has failed, the outcome of the task.
func (r *restarter) giveUp(v *verdict) {
	f, bare := v.err.(*finalError)
	switch final := isFinal(v.err); {
	case v.panic != nil:
		if !final {
			r.recordBeside(r.restartError(nil, nil))
		}
		r.settle(byPanic, v.panic.asError())
	case bare:
		r.settle(byReturn, f.err)
	case final:
		r.settle(byReturn, v.err)
	default:
		r.settle(byReturn, r.restartError(nil, v.err))
	}
}

// restartError returns the error of a task that has failed, last with last, and has been
// stopped by why, or failed too often if that is nil.
func (r *restarter) restartError(why, last error) error {
	return &RestartError{
		Failures: r.failures, Err: last,
		task: r.t.name(), within: r.Within, recent: len(r.recent), why: why,
	}
}

// startAnew goes on with the task after Goexit, when it is time for the next run: on
// this goroutine, or on one of the executor.
func (r *restarter) startAnew() {
	if exploring {
		defer starts("restart", r)()
	}
	r.wait()
	if r.over || r.t.more.delivery == nil {
		r.t.main() // which settles the task if it is over
		return
	}
	r.submit(r.t.more.delivery.ex)
}

// submit gives the task to ex. Of three that may come first one decides: ex, by running
// the task or by refusing it, and a cancellation.
func (r *restarter) submit(ex Executor) {
	d := &delivery{ex: ex}
	end := func(err error) bool {
		first := d.decide()
		if first {
			r.settle(byReturn, err)
			r.t.main()
		}
		return first
	}
	unwatch := context.AfterFunc(r.t, func() { end(r.restartError(r.t.stopped().asError(), r.last)) })
	var refused error
	bad := guard("executor of "+r.t.name(), func() {
		refused = ex.Execute(func() {
			if d.decide() {
				unwatch()
				r.t.main()
			}
		})
	})
	if bad != nil {
		refused = bad
	}
	if refused == nil || end(&RejectedError{Task: r.t.name(), Err: refused}) {
		return
	}
	if p, panicked := bad.(*PanicError); panicked {
		panic(misusedExecutor(r.t, p.Value))
	}
}
