package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Run runs services until ctx is done or one of them ends, then stops them, and returns
// when they have all ended.
//
//	err := service.Run(ctx, []service.Service{{Name: "worker", Run: work}, service.HTTP("http", l, server)})
//
// # Details
//
// Start: in the order of the slice. One with a Startup must call [Ready] before the next
// is started. If it ends before that, or its time passes, those that were started are
// stopped, and its error is the first that Run returns. Services have the values of ctx
// but not its cancellation, and are joined by the scope of ctx.
//
// Level 1, drain, begins when ctx is done, or with the first end of a service, though not
// with a nil of one that MayEnd. [Draining] is closed and [IsReady] is false from here
// on. After [Delay] the services are stopped in reverse order, each when the one before
// it has ended: its Drain is called, or else the ctx of its Run is cancelled, with the
// cause of ctx, the failure, or [async.ErrDismissed]. A service that was never ready has
// nothing to drain and is cancelled, and so is one whose Drain has failed, at once and
// alone. It has ended when Run, Drain and all that they have started have returned.
//
// Level 2, cancel, begins when [Grace] is over, when [Hurry] is done, when
// [async.Shutdown] says so, and with that of the Run in whose service this one was
// called: every ctx at once is cancelled, with a cause that matches that of level 1 and,
// if time was up, is a [*async.TimeoutError]. Its text names the services that still
// drained then, for how long, what ran in them, and those whose turn had not come.
// Services that are left after [GiveUp] are named in a [*async.StragglerError], with
// their stacks, and Run returns without them. They stay on record at the root.
//
// Run returns nil if all were drained and none has failed. Else the error matches each
// failure: the one that has ended the run comes first, then that it was cut short by
// level 2, if it was, then the rest in the order in which they came. A failure is the
// error of a Run or Drain, with the name of the service before it. An error that says
// that the service was told to stop is none: the cause of its own ctx,
// [http.ErrServerClosed], the end of a process by a signal. Unasked they are failures. A
// panic of a service is one, too: the others are drained, and then Run panics with its
// [*async.PanicError], to which the other errors are attached.
//
// Without services Run returns nil at once, and so it does if ctx is done before anything
// was started. It panics if ctx or the Run of a service is nil. Several goroutines may
// call Run at once.
//
// Run may be called in a service: its level 1 begins when the turn of that service has
// come, and Draining is closed, and IsReady false, when the level 1 around it begins. A
// Limit around Run counts each service, and the Drain of the one whose turn has come: with
// no place left that waits, until [Grace] is over, and the error says that it is queued.
//
// The two levels are those of Swift's ServiceGroup.
//
// [http.ErrServerClosed]: https://pkg.go.dev/net/http#ErrServerClosed
func Run(ctx context.Context, services []Service, opts ...Option) error {
	s := newSet(ctx, services, opts)
	defer s.takeNone()
	defer s.discard()
	defer s.endLog()
	level2, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	s.cancel = cancel
	scope := []async.ScopeOption{async.Name("services")}
	if s.giveUp != Forever {
		// The supervisor waits as long for what it has cancelled; what is left then is let go.
		scope = append(scope, async.DetachAfter(s.giveUp))
	}
	if s.program != nil {
		s.program.enter(s)
		defer s.program.leave(s)
	}
	return s.outcome(async.Scope(level2, s.supervise, scope...))
}

// A set is one call of Run. Its supervisor is the goroutine of that call.
type set struct {
	options
	outer   context.Context // the ctx of Run
	hurry   <-chan struct{} // closed at the second signal; nil: never
	program *program        // nil without Main
	parent  *member         // the service that Run was called in; may be nil
	members []*member
	changed chan struct{} // has a place of one: there is news from a service

	// taking is done when the services are to take no more: level 1 of this Run, or of
	// one around it, has begun. Its parent is that of the Run around, so they hear of it
	// before the announcement there has ended.
	taking   context.Context
	takeNone context.CancelFunc // of taking; called by announce, and when Run has ended

	// These are the supervisor's.
	scope    context.Context // its own, cancelled at level 2
	cancel   context.CancelCauseFunc
	launched int       // how many members were started
	started  bool      // no more will be
	stopping bool      // level 1 is to begin or has begun
	why      error     // why; nil: a service has ended without a failure
	failed   bool      // why is a failure of a service
	early    bool      // a service has ended because a Run around this one drains
	cut      error     // the cause of level 2; nil: it has not come
	failures []failure // in no order

	mu       sync.Mutex // guards what follows, and of members what they say
	draining bool
	last     int           // see nextLocked
	logged   chan struct{} // closed when the last line that was logged is written
}

// newSet returns the set of one call of Run.
func newSet(ctx context.Context, services []Service, opts []Option) *set {
	if ctx == nil {
		panic("service: Run with a nil context: pass the one that Main gives, or context.Background()")
	}
	s := &set{
		options: defaults,
		outer:   ctx,
		parent:  memberOf(ctx),
		program: programOf(ctx),
		changed: make(chan struct{}, 1),
		logged:  closedChan,
	}
	around := context.Background()
	if s.parent != nil {
		around = s.parent.set.taking
	}
	s.taking, s.takeNone = context.WithCancel(around)
	if s.program != nil {
		s.options, s.hurry = s.program.options, s.program.hurry.Done()
	}
	s.options = s.with(opts)
	for i := range services {
		svc := services[i] // the caller may change its slice
		svc.check(i)
		s.members = append(s.members, &member{set: s, svc: &svc, label: svc.label(i), turn: make(chan struct{})})
	}
	return s
}

// supervise runs the services through their levels.
func (s *set) supervise(ctx context.Context) error {
	s.scope = ctx
	if s.program != nil {
		s.program.serves()
	}
	s.start()
	s.started = true
	s.wait(nil, func() bool { return s.stopping })
	s.drain()
	s.cutShort()
	for _, m := range s.members {
		if m.rerun {
			m.logFailure("was to be started again to be drained, and was not")
		}
	}
	return nil
}

// drain is level 1.
func (s *set) drain() {
	s.announce()
	if s.delay > 0 && s.wasReady() && !s.pass(s.delay) {
		return
	}
	grace, stop := after(s.grace)
	defer stop()
	for _, m := range slices.Backward(s.members[:s.launched]) {
		if s.mustCut() { // level 2 has come first: how fast m would end does not decide
			return
		}
		m.itsTurn()
		if !s.wait(grace, func() bool { return s.stop(m) }) {
			return
		}
	}
}

// announce tells everybody that the services take no more.
func (s *set) announce() {
	if s.program != nil {
		s.program.serves()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	s.takeNone()
}

// wasReady reports whether IsReady may have said true.
func (s *set) wasReady() bool {
	return !slices.ContainsFunc(s.members, func(m *member) bool { return !m.wasReady() })
}

// pass waits for d, less if all services end before. It reports false if level 2
// is to begin.
func (s *set) pass(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	return s.wait(timer.C, s.over) || !s.mustCut()
}

// cutShort is level 2, if anything is left of level 1. When it returns, what is
// left has had its time.
func (s *set) cutShort() {
	if s.collect(); s.over() {
		return
	}
	s.cut = s.causeOfCut()
	s.cancel(s.cut)
	for _, m := range s.members[:s.launched] {
		m.itsTurn()
	}
	giveUp, stop := after(s.giveUp)
	defer stop()
	s.wait(giveUp, s.over)
}

// over reports whether nothing of what was started is left.
func (s *set) over() bool {
	for _, m := range s.members[:s.launched] {
		if !m.over() {
			return false
		}
	}
	return true
}

// discard tells those services that were never run.
func (s *set) discard() {
	for _, m := range s.members {
		if m.svc.unused != nil && !m.now().called {
			m.svc.unused()
		}
	}
}

// nextLocked numbers what happens.
func (s *set) nextLocked() int {
	s.last++
	return s.last
}

func (s *set) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextLocked()
}
