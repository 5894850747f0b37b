package sqlstore

import (
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A step is what one transaction does to the tasks of a queue. It changes records in memory;
// save writes them.
type step struct {
	t      tx
	queue  string
	now    moment
	counts map[taskqueue.Counter]int64
	least  int64    // the lease that a worker asks for, in µs; 0: none does
	dead   []string // what it has made dead letters
	room   bool     // a lease was given back: what waits for room may start
	freed  []wake   // places that were given back; see keylimits.go
	sooner bool     // something is due before all that others know of
	due    dues     // of what waits by it, and did not before
	// ended are tasks that have ended, and whose children were told nothing of it yet; see release.
	ended    []*record
	released int // how many rows of tq_edge it has dealt with
}

func newStep(t tx, queue string) *step {
	return &step{t: t, queue: queue, counts: map[taskqueue.Counter]int64{}, due: noDues()}
}

func (s *step) count(c taskqueue.Counter, n int64) {
	if n != 0 {
		s.counts[c] += n
	}
}

// settle takes an outcome over if its token is that of the last claim, also when its lease
// has run out and the task waits for its next run by now: the work has been done, and nobody
// else has begun it. It reports whether it has changed r.
func (s *step) settle(r *record, o *store.Outcome) (answer store.SettleResult, changed bool) {
	switch {
	case r == nil:
		return store.Gone, false
	case r.Token != o.Token:
		return store.Stale, false
	case r.settled == o.Token:
		return r.isSettled(), false
	case r.State != taskqueue.StateRunning && !r.has(reaped):
		return store.Stale, false // Retry, Promote or Cancel has decided meanwhile
	}
	s.room = s.room || r.State == taskqueue.StateRunning
	if r.has(reaped) {
		s.uncrash(r)
	}
	r.settled = o.Token
	s.end(r, o)
	return r.isSettled(), true
}

// isSettled is what is said of a run that is settled.
func (r *record) isSettled() store.SettleResult {
	if r.State == taskqueue.StateCancelled && r.has(asked) {
		return store.Overruled
	}
	return store.Settled
}

// uncrash takes back what crash has made of a record.
func (s *step) uncrash(r *record) {
	r.Crashes--
	s.count(taskqueue.CountCrashed, -1)
	switch r.State {
	case taskqueue.StateDead:
		s.count(taskqueue.CountDead, -1)
	case taskqueue.StateCancelled:
		s.count(taskqueue.CountCancelled, -1)
	}
	r.set(reaped, false)
	r.ended, r.forget = 0, 0
}

// end is what an outcome makes of a record.
func (s *step) end(r *record, o *store.Outcome) {
	if o.Error != "" {
		r.fail(o.Error)
	}
	if r.has(asked) && o.Kind != store.Succeeded {
		s.cancelled(r)
		return
	}
	switch o.Kind {
	case store.Succeeded:
		if len(o.Result) > 0 { // before its only end it had none
			r.extra += int64(len(o.Result))
			r.Result, r.texts = o.Result, r.texts|resultText
		}
		s.over(r, taskqueue.StateDone)
		s.count(taskqueue.CountDone, 1)
	case store.Buried:
		r.Failures++
		s.count(taskqueue.CountFailed, 1)
		s.bury(r)
	case store.Failed:
		r.Failures++
		r.Releases = 0
		s.count(taskqueue.CountFailed, 1)
		if r.Failures >= r.MaxFailures {
			s.bury(r)
			return
		}
		s.wait(r, taskqueue.StateRetrying, o.Wait())
	default:
		s.giveBack(r, o)
	}
}

// giveBack has a task wait again, with no attempt spent.
func (s *step) giveBack(r *record, o *store.Outcome) {
	r.Attempt--
	if r.Releases++; o.Kind == store.Snoozed {
		r.Releases = 0
	}
	s.count(taskqueue.CountReleased, 1)
	if o.Kind == store.Unhandled {
		s.count(taskqueue.CountUnhandled, 1)
	} else { // a handler has begun it
		r.set(lasts, true)
	}
	state := taskqueue.StateScheduled
	if r.Failures > 0 {
		state = taskqueue.StateRetrying
	}
	s.wait(r, state, o.Wait())
}

func (s *step) wait(r *record, state taskqueue.State, after time.Duration) {
	s.leaves(r)
	r.State, r.due, r.leaseEnd = state, dueIn(s.now.wall, after), 0
	r.set(atOnce, after <= 0)
	s.due.add(r)
}

// over ends a task. Its unique key is free from now on.
func (s *step) over(r *record, state taskqueue.State) {
	s.leaves(r)
	r.State, r.ended, r.leaseEnd, r.forget = state, s.now.wall, 0, 0
	r.set(holds, false)
	s.ended = append(s.ended, r)
	if state != taskqueue.StateDead {
		r.forget = s.now.steady + max(r.Retention, taskqueue.MinRetention).Microseconds()
	}
}

func (s *step) bury(r *record) {
	s.over(r, taskqueue.StateDead)
	s.count(taskqueue.CountDead, 1)
	s.dead = append(s.dead, r.ID)
}

func (s *step) cancelled(r *record) {
	s.over(r, taskqueue.StateCancelled)
	s.count(taskqueue.CountCancelled, 1)
}

// crash is what a lease that has run out makes of a record. The first crash is followed by a
// run at once, each further one by a longer wait.
func (s *step) crash(r *record) {
	r.Crashes++
	r.set(reaped, true)
	s.count(taskqueue.CountCrashed, 1)
	r.fail("its lease ran out: the worker " + r.Worker + " has ended, or could not reach the store")
	switch {
	case r.has(asked):
		s.cancelled(r)
	case r.Crashes >= r.MaxCrashes:
		s.bury(r)
	default:
		var after time.Duration
		if r.Crashes > 1 {
			after = min(time.Second<<min(r.Crashes-2, 10), time.Minute)
		}
		s.wait(r, taskqueue.StateRetrying, after)
	}
}

// expired reports whether r is not to be started any more.
func (s *step) expired(r *record) bool {
	return r.Attempt == 0 && !r.has(lasts) && !r.ExpiresAt.IsZero() && micros(r.ExpiresAt) < s.now.wall
}

func (s *step) expire(r *record) {
	r.fail("it was not started before it expired")
	s.bury(r)
	s.count(taskqueue.CountExpired, 1)
}

// begin puts a task that waits under a lease.
func (s *step) begin(r *record, worker string, token int64, lease time.Duration) {
	r.State, r.Token, r.Worker, r.StartedAt = taskqueue.StateRunning, token, worker, time.UnixMicro(s.now.wall).UTC()
	r.Attempt++
	r.begun = true
	r.set(reaped, false)
	if r.Until == taskqueue.Start {
		r.set(holds, false)
	}
	s.lend(r, lease)
}

// lend gives a task that runs a lease from now.
func (s *step) lend(r *record, lease time.Duration) {
	r.lease, r.spareEnd = lease.Microseconds(), 0
	r.leaseEnd = s.now.steady + r.lease
	r.set(spared, false)
}

// fail notes why a task has failed last.
func (r *record) fail(text string) { r.LastError, r.texts = text, r.texts|errorText }
