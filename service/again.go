package service

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file is how a service is told to stop, also one that waits to be run again ([async.Restart]): it is
// run once more and drained, for something may wait for it.

// stop tells m, whose turn has come, to drain, as soon as it can, and reports whether nothing
// of it is left. It is asked after every change.
func (s *set) stop(m *member) (over bool) {
	now := m.now()
	switch {
	case m.ended || m.told || m.again:
	case m.svc.Drain != nil && now.returned: // with something left that it does not drop
	case m.svc.Drain != nil && now.ready:
		m.told = true
		m.drain = startJob(now.all.Context(), m.callDrain, ended, async.Name(m.label+drainSuffix))
	case m.svc.Drain != nil && now.mayBePaused() && !m.rerun && !m.svc.reopened:
		m.again = true
		m.cancel(s.cause()) // a pause is over; see runAgain
	case m.svc.Drain != nil && now.everReady && (now.running || m.rerun): // it will be ready again, or fail
		s.awaitDrainable(m)
	default:
		m.told = true
		m.cancel(s.cause())
	}
	return m.over()
}

// ended is how a Drain has ended that has called Goexit on the goroutine of its job.
func ended(context.Context) error { return async.ErrGoexit }

// runAgain starts m once more, to be drained: it has failed, and its turn to stop came before it was
// run again. Work that it had accepted may wait for it.
func (s *set) runAgain(m *member) {
	m.end()
	s.mu.Lock()
	m.state.over, m.state.again, m.state.late = false, true, false
	s.mu.Unlock()
	m.again, m.rerun = false, true
	s.call(m)
}

// awaitDrainable bounds the time that m, which was started again, has to be ready by its Startup. A service
// that is not ready then is cancelled, and that is a failure: it may leave something undone.
func (s *set) awaitDrainable(m *member) {
	limit := m.svc.Startup
	switch waited := time.Since(m.unready); {
	case limit == 0 || limit == Forever:
	case m.unready.IsZero():
		m.unready = time.Now()
		time.AfterFunc(limit, s.notify)
	case waited >= limit:
		m.told = true
		m.cancel(s.cause())
		s.fail(failure{err: &async.TimeoutError{Task: m.label + ": startup", Limit: limit, Waited: waited}, order: s.next()})
	}
}

// mayBePaused reports whether the service waits to be run again, if its task does that at all, or
// what the last call has started is joined. How the task has ended says which it was.
func (st *state) mayBePaused() bool { return st.everReady && !st.running && !st.returned }

// wasPaused reports whether the task, which has ended with err, waited to call Run again when its turn to
// stop came.
func (m *member) wasPaused(err error) bool {
	if m.now().late {
		return true
	}
	stopped, ok := err.(*async.RestartError)
	return ok && m.again && errors.Is(stopped, context.Cause(m.ctx))
}

// stopsByDrain reports whether m may be run once more to be drained: its turn to stop has come, and level 2
// has not.
func (s *set) stopsByDrain(m *member) bool {
	return m.svc.Drain != nil && !m.svc.reopened && !m.rerun && closed(m.turn) && s.cut == nil && !s.mustCut()
}
