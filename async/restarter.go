package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file starts tasks again that have failed.
//
// Such a task is a loop over runs on the goroutine of the task. Each run is a scope
// inside the task. A handler that calls Goexit takes the goroutine along: then the loop
// goes on on another one.

// restartable is a task that may be started with Restart.
type restartable interface {
	tree.Work
	GivesNothing() bool
	// RunOnce calls the handler for the run t.
	RunOnce(t *tree.Task) error
	// Drop is called when a run has failed. valid: the handler has returned a value, which
	// is nobody's.
	Drop(valid bool)
	// EndRuns ends the task as if its handler had ended so.
	EndRuns(exit tree.ExitKind, err error, valid bool)
}

// A restarter runs a task with Restart: it stands before what stands around a task. One
// goroutine at a time uses it. The work of one happens before the next goroutine, which
// it starts.
type restarter struct {
	RestartPolicy
	restartable
	t    *tree.Task
	each tree.TaskOptions // what is said of each run

	failures int             // since the last run that was healthy
	recent   []time.Duration // when, on our clock, those were that count for Attempts; the last one last
	last     error           // the last of the failures
	pause    time.Duration   // until the next run

	failed tree.AtomicPointer[pastFailures] // what others may know of the failures; nil: none counts

	over  bool // there is no other run; what follows says how the task ends
	exit  tree.ExitKind
	err   error
	valid bool // the handler of the last run has returned a value
}

// StandBefore has r run t, whose options are those of m.
func (r *restarter) StandBefore(t *tree.Task, m *tree.More) {
	r.t, r.restartable, t.Self = t, t.Self.(restartable), r
	r.each = tree.TaskOptions{OnAbort: m.OnAbort, OnCancel: m.OnCancel, HookTimeout: m.HookTimeout}
	if h := m.Added().Heart; h != nil {
		r.each.Hang().Heart, m.Hung.Heart = h, nil
	}
	m.OnAbort, m.OnCancel = nil, nil
}

// Run is the body of the goroutine of the task, or of one after it.
func (r *restarter) Run() {
	defer r.leave() // also on Goexit
	if r.t.State.Load() == tree.StateQueued {
		r.t.Enter()
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
		if r.t.State.Load() != tree.StateDone { // see Task.Rescue
			r.t.EndUnrun()
			r.Unrun(&tree.Verdict{Err: ErrGoexit, Goexit: true})
		}
	}()
	r.EndRuns(r.exit, r.err, r.valid)
}

// Rescue has nothing to do: leave has done it.
func (r *restarter) Rescue(*tree.Verdict) {}

// wait waits until it is time for the next run, or the task is stopped.
func (r *restarter) wait() {
	if r.over {
		return
	}
	_ = Sleep(r.t, r.pause)
	if stop := r.t.Stopped(); stop != nil {
		r.settle(tree.ByReturn, r.restartError(stop.AsError(), r.last))
	}
}

// once calls the handler, and joins what that has started. It does not come back if the
// handler calls Goexit.
func (r *restarter) once() {
	options := &tree.ScopeOptions{Name: r.t.Name(), HookTimeout: r.each.HookTimeout}
	s := tree.NewCallerScope(r.t.Scope(), nil, options, false)
	s.Task.Kind = tree.KindRun
	s.Task.More.OnAbort, s.Task.More.OnCancel = r.each.OnAbort, r.each.OnCancel
	if h := r.each.Added().Heart; h != nil {
		s.Task.More.Hang().Heart = h.Again()
	}
	tree.Enroll(s) // what it stands in ends only after it
	tree.TellStart(s.Task)
	n := tree.ScopeCall{Scope: s}
	began := tree.Clock()
	defer func() { r.judge(&n, tree.Clock()-began) }() // also on Goexit
	r.call(&n)
	tree.NilPanic(&n.Exit)
}

// call calls the handler. A panic is recovered here; Goexit is not.
func (r *restarter) call(n *tree.ScopeCall) {
	defer func() { tree.Caught(n.Scope.Task, recover(), &n.Exit, &n.Err) }()
	if h := n.Scope.Task.More.Added().Heart; h != nil {
		h.Start(n.Scope)
	}
	n.Err = r.RunOnce(n.Scope.Task)
	n.Exit = tree.ByReturn
}

// judge ends the run n, whose handler took so long, and decides whether there is
// another one.
func (r *restarter) judge(n *tree.ScopeCall, took time.Duration) {
	valid := n.Exit == tree.ByReturn && n.Err == nil
	if n.Exit == tree.ByGoexit {
		n.Err = ErrGoexit
	}
	judged := false
	defer func() {
		if !judged { // a method of a user's error has called Goexit
			n.Rescue()
			r.settle(tree.ByGoexit, ErrGoexit)
		}
	}()
	var v tree.Verdict
	n.Scope.Finish(n.Exit, n.Err, &v)
	taskStop := r.t.Stopped()
	if stop := n.Scope.StopBeforeEnd(); v.Err == nil && taskStop == nil && stop != nil && missedBeat(n, stop) {
		v = tree.Verdict{Err: stop.AsError(), Cause: stop.Cause}
	}
	n.Leave(&v)
	r.valid = valid
	switch {
	case v.Err == nil:
		r.settle(tree.ByReturn, nil)
	case taskStop != nil:
		r.stop(taskStop, n.Exit, &v)
	case r.retry(v.Err, took):
		r.Drop(valid)
		r.valid = false
		r.plan()
	default:
		r.giveUp(&v)
	}
	judged = true
}

// missedBeat reports that the run, which was cancelled with stop, was so by its own
// Heartbeat. Then it has failed, even if the handler has returned nil, as a loop does
// that ends when its ctx does.
func missedBeat(r *tree.ScopeCall, stop *tree.StopError) bool {
	_, missed := stop.Cause.(*WatchdogError)
	return missed && r.Scope.Task.More.Added().Heart != nil
}

// retry counts a failure, of a run whose handler took so long, and reports whether there
// may be another run.
func (r *restarter) retry(err error, took time.Duration) bool {
	if took >= r.Healthy {
		r.failures, r.recent = 0, nil
	}
	r.failures++
	r.last = err
	r.failed.Store(&pastFailures{r.failures, err})
	if isFinal(err) {
		return false
	}
	if r.Within < 0 {
		return true
	}
	now, old := tree.Clock(), 0
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
	bad := tree.Guard("interval of "+r.t.Name(), func() { d = r.Interval(r.failures) })
	r.pause = max(d, minInterval)
	switch bad.(type) {
	case nil:
	case *PanicError:
		r.recordBeside(r.last)
		r.settle(tree.ByPanic, bad)
	default:
		r.recordBeside(r.last)
		r.settle(tree.ByReturn, bad)
	}
}

// settle says how the task ends.
func (r *restarter) settle(exit tree.ExitKind, err error) { r.over, r.exit, r.err = true, exit, err }

// recordBeside has err told beside the outcome of the task.
func (r *restarter) recordBeside(err error) {
	r.t.Scope().Record(&tally.Fact{Err: err, GoesOn: true})
}

// stop makes v, the outcome of a run, that of the task, which was stopped with stop. exit
// is how the handler has ended.
func (r *restarter) stop(stop *tree.StopError, exit tree.ExitKind, v *tree.Verdict) {
	err := v.Err
	if e := v.Listed(); e != nil && tally.Same(e.Cause, stop.Cause) && e.IsOne() {
		err = e.Errs[0] // the task says the cause itself
	}
	switch {
	case v.Panic != nil:
		r.settle(tree.ByPanic, v.Panic.AsError())
	case exit == tree.ByGoexit && tally.Same(err, ErrGoexit):
		r.settle(tree.ByGoexit, err)
	case v.Echo && tally.Same(v.Cause, stop.Cause) && r.failures > 0:
		r.settle(tree.ByReturn, r.restartError(v.Err, r.last))
	default:
		r.settle(tree.ByReturn, err)
	}
}

// giveUp makes v, which says how the last run has failed, the outcome of the task.
func (r *restarter) giveUp(v *tree.Verdict) {
	f, bare := v.Err.(*finalError)
	switch final := isFinal(v.Err); {
	case v.Panic != nil:
		if !final {
			r.recordBeside(r.restartError(nil, nil))
		}
		r.settle(tree.ByPanic, v.Panic.AsError())
	case bare:
		r.settle(tree.ByReturn, f.err)
	case final:
		r.settle(tree.ByReturn, v.Err)
	default:
		r.settle(tree.ByReturn, r.restartError(nil, v.Err))
	}
}

// restartError returns the error of a task that has failed, last with last, and has been
// stopped by why, or failed too often if that is nil.
func (r *restarter) restartError(why, last error) error {
	return &RestartError{
		Failures: r.failures, Err: last,
		task: r.t.Name(), within: r.Within, recent: len(r.recent), why: why,
	}
}

// startAnew goes on with the task after Goexit, when it is time for the next run: on
// this goroutine, or on one of the executor.
func (r *restarter) startAnew() {
	if tree.Exploring {
		defer tree.Starts("restart", r)()
	}
	r.wait()
	if r.over || r.t.More.Delivery == nil {
		r.t.Main() // which settles the task if it is over
		return
	}
	r.submit(r.t.More.Delivery.Executor)
}

// submit gives the task to ex. One of three decides, whichever comes first: ex, by running
// the task or by refusing it, and a cancellation.
func (r *restarter) submit(ex Executor) {
	d := &tree.Delivery{Executor: ex}
	end := func(err error) bool {
		first := d.Decide()
		if first {
			r.settle(tree.ByReturn, err)
			r.t.Main()
		}
		return first
	}
	unwatch := context.AfterFunc(r.t, func() { end(r.restartError(r.t.Stopped().AsError(), r.last)) })
	var refused error
	bad := tree.Guard("executor of "+r.t.Name(), func() {
		refused = ex.Execute(func() {
			if d.Decide() {
				unwatch()
				r.t.Main()
			}
		})
	})
	if bad != nil {
		refused = bad
	}
	if refused == nil || end(r.restartError(&RejectedError{Task: r.t.Name(), Err: refused}, r.last)) {
		return
	}
	if p, panicked := bad.(*PanicError); panicked {
		panic(tree.MisusedExecutor(r.t, p.Value))
	}
}
