package service

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file is the task of a service: a call of Run, or several, if it is made again after a failure.

// A notRetried is the cause with which the task is ended whose failure is not to be retried, where no error of the
// handler can say so. It comes when all that the call has started has ended. It does not match the failure: a
// failure that says that something was canceled would count as one that was told to stop.
type notRetried struct{ error }

// call is the handler of the task of m. Under async.Restart it is called again
// and again.
func (m *member) call(ctx context.Context) (err error) {
	if !m.enter() {
		return nil
	}
	m.logRestart(ctx)
	async.OnExit(ctx, func(_ context.Context, outcome error) error { // it is called last, so it hears of the others
		m.runOver(outcome, context.Cause(ctx))
		return nil
	})
	returned := false
	defer func() { // also on a panic and on Goexit
		if retry := m.leave(returned, err); !retry {
			err = async.Final(err)
		}
	}()
	err = m.svc.Run(ctx)
	returned = true
	return err
}

// callDrain is the handler of the task of Drain.
func (m *member) callDrain(ctx context.Context) error {
	err := m.svc.Drain(ctx)
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	m.state.drainSaid = err
	return err
}

// enter notes that Run is about to be called. It is false if that is not to be: the drain has begun
// before the first call, or the turn of the service to stop has come before another one.
func (m *member) enter() bool {
	if m.set.program != nil {
		m.set.program.mended(m)
	}
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	st := &m.state
	if !st.called && m.set.draining {
		return false
	}
	if st.called && !st.since.IsZero() && !st.again {
		st.late = true
		return false
	}
	st.again, st.missed = false, nil
	st.called, st.running = true, true
	st.calls++
	st.setReady(m.svc.Startup == 0)
	m.set.notify() // who has to drain it waits for that
	return true
}

// leave notes that Run has come to its end, and reports whether a failure may
// be retried.
func (m *member) leave(returned bool, err error) (retry bool) {
	stopped := m.set.outer.Err() != nil
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	st := &m.state
	st.running, st.ready, st.said = false, false, err
	st.returned = returned && err == nil
	st.told = stopped || m.set.taking.Err() != nil
	if st.early == nil {
		st.order = m.set.nextLocked()
	}
	if returned && err != nil && !st.told {
		st.waits = time.AfterFunc(patience, func() { m.logWait(err) })
	}
	retry = st.mayRetry()
	st.retried, st.final = retry, !retry && !returned
	return retry
}

// mayRetry reports whether Run may be called again after a failure.
func (st *state) mayRetry() bool { return st.everReady && st.since.IsZero() }

// runOver notes that everything has ended that a call of Run has started, whose ctx was cancelled with cause, if it
// was. If Run has returned nil, perhaps long ago, and outcome is a failure, it is one of now, and Run is called
// again or not as after an error of Run.
func (m *member) runOver(outcome, cause error) {
	stopped := m.set.outer.Err() != nil
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	st := &m.state
	if st.waits != nil {
		st.waits.Stop()
		st.waits = nil
	}
	if !st.returned {
		if st.final {
			m.giveUp(&notRetried{outcome})
		} else if st.retried {
			st.failed = outcome
		}
		return
	}
	st.told = stopped || m.set.taking.Err() != nil
	if st.early == nil {
		st.order = m.set.nextLocked()
	}
	if async.EndingOf(outcome) != async.Failed || onlyLate(outcome, cause) {
		return
	}
	if missed, ok := cause.(*async.WatchdogError); ok && !isList(outcome) {
		outcome, st.missed = missed, missed
	}
	if st.mayRetry() {
		st.failed, st.returned = outcome, false
	} else {
		m.giveUp(&notRetried{outcome})
	}
}

// onlyLate reports whether nothing has gone wrong but that the [async.Timeout] of the task has passed, before Run has
// returned nil: then the task has ended well.
func onlyLate(outcome, cause error) bool {
	_, late := cause.(*async.TimeoutError)
	return late && !isList(outcome) && !same(outcome, cause) // else it is the failure of a task that Run has started
}

func isList(err error) bool {
	_, list := err.(*async.ScopeError)
	return list
}
