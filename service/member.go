package service

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A member is one service of a Run.
type member struct {
	set   *set
	svc   *Service
	label string

	// These are the supervisor's.
	ctx     context.Context // what its tasks are started with; nil before that
	cancel  context.CancelCauseFunc
	own     *async.Group            // which run is in
	giveUp  context.CancelCauseFunc // ends run, and no other task of m
	run     *job
	drain   *job      // nil: Drain was not called
	ended   bool      // run has settled, and its outcome was looked at
	drained bool      // as ended, of drain
	failed  bool      // state.early was looked at
	again   bool      // its turn to stop has ended the pause between two calls of Run: one more may have to be made
	rerun   bool      // that has been started
	unready time.Time // since when it is waited for, to be ready and drained
	told    bool      // it was told to stop: drain was started, or ctx cancelled for good

	// turn is closed by the supervisor when the service is told to stop, by whichever
	// means: for a Run in it that does not hear of the cancellation of ctx.
	turn chan struct{}

	state state // guarded by set.mu
}

// drainSuffix is what the name of the task of Drain has behind that of the service.
const drainSuffix = ": drain"

// A state is what other goroutines than the supervisor's say of a service, or ask.
type state struct {
	all   *async.Group // what the service is: own, and drain; nil before the start
	since time.Time    // when the turn of the service to stop came; the zero time before
	again bool         // Run may be called once although that has come
	late  bool         // it was not called because of that
	over  bool         // nothing of all is left

	called bool        // Run was called at least once
	calls  int         // how often it was
	failed error       // how the last call has failed, until it was logged; nil: it has not
	waits  *time.Timer // logs that Run has failed, if what it has started does not end; nil: it has, or Run has not

	running   bool  // Run was called and has not returned
	ready     bool  // Ready was called in this call of Run, or need not be
	everReady bool  // as ready, in any call
	retried   bool  // Run has failed, and may be called again
	final     bool  // Run has panicked or called Goexit, and is not called any more
	returned  bool  // Run has returned nil, and is not called any more
	told      bool  // the set had been told to stop, or to take no more, when Run returned last
	order     int   // of the last failure or return among all that happened; 0: there was none
	missed    error // a beat, whereupon Run has returned nil; nil: none
	early     error // what has failed although Run has not returned yet

	said      error // what Run has returned last; the error of its task may leave out an echo
	drainSaid error // as said, of Drain
}

// A memberKey is the key under which a context shows the member it belongs to.
type memberKey struct{}

// memberOf returns the member that ctx belongs to, nil if there is none.
func memberOf(ctx context.Context) *member {
	m, _ := ctx.Value(memberKey{}).(*member)
	return m
}

func (st *state) setReady(ready bool) {
	st.ready = ready
	st.everReady = st.everReady || ready
}

// markReady notes that m is ready, and tells the supervisor.
func (m *member) markReady() {
	m.set.mu.Lock()
	if m.state.running {
		m.state.setReady(true)
	}
	m.set.mu.Unlock()
	m.set.notify()
}

// fail tells the supervisor that m has failed with err, before Run returns: it
// has still something to drain. It reports false if m has been told to stop.
func (m *member) fail(err error) bool {
	stopped := m.set.outer.Err() != nil
	m.set.mu.Lock()
	fails := !stopped && m.set.taking.Err() == nil
	if fails {
		m.state.early, m.state.order = err, m.set.nextLocked()
	}
	m.set.mu.Unlock()
	m.set.notify()
	return fails
}

// itsTurn notes that m is told to stop.
func (m *member) itsTurn() {
	if closed(m.turn) {
		return
	}
	close(m.turn)
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	m.state.since = time.Now()
}

// end notes that nothing of m is left.
func (m *member) end() {
	m.set.mu.Lock()
	m.state.over = true
	m.set.mu.Unlock()
	_ = m.now().all.Wait(context.WithoutCancel(m.set.scope)) // the two tasks have told what went wrong
}

// now returns what m has said so far.
func (m *member) now() state {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	return m.state
}

// wasReady reports whether the next service may be started.
func (m *member) wasReady() bool {
	now := m.now()
	return now.everReady || m.doneWell(now)
}

// doneWell reports whether m has ended, and that counts as ready.
func (m *member) doneWell(now state) bool { return now.returned && m.svc.MayEnd }

// outcome returns how run, which has settled, has ended.
func (m *member) outcome() error {
	err := m.run.result()
	rest := m.own.Wait(context.WithoutCancel(m.set.scope)) // nothing is left in it
	if err == nil {
		return rest
	}
	return err
}

// over reports whether nothing of m is left. It is the supervisor's.
func (m *member) over() bool { return m.ended && (m.drain == nil || m.drained) }
