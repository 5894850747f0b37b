package service

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A Service is something that serves until it is told to stop: a server, a
// consumer of a queue, a loop. [Run] runs several.
type Service struct {
	// Name is what errors and reports call the service. It need not be unique.
	Name string

	// Run serves. It blocks for as long as the service lasts. Its ctx has the
	// values of the ctx of [Run], is a scope of package async, and lives on while
	// the service is drained: as long as it lives, nothing that was accepted is
	// to be dropped. It is cancelled at level 1 if there is no Drain or this fails,
	// and at level 2. Tasks that Run has started with it are joined. A nil Run panics.
	Run func(ctx context.Context) error

	// Drain is level 1: take no more, finish what you have. It is called once,
	// beside Run, and not if Run has ended or has never called [Ready]: tasks that are left of a
	// Run which has returned nil watch [Draining]. It makes
	// Run come to its end, and may wait for that or not. Its ctx is cancelled at
	// level 2. If it is nil, the ctx of Run is cancelled instead; if it fails, the ctx
	// of Run is cancelled then, with a cause that matches the failure and that of
	// level 1: Run may not have been told, and the other services need the time.
	Drain func(ctx context.Context) error

	// Startup is how long Run may take to call [Ready]; the next service is
	// started then. 0: the service counts as ready whenever it runs, and the next
	// is started at once: it does not wait until a Limit has a place for this one,
	// nor until an executor runs it that has taken it. A negative one panics.
	Startup time.Duration

	// MayEnd says that the others carry on when Run returns nil: a task with an end
	// rather than a server. With a Startup such an end counts as Ready.
	MayEnd bool

	// Options are those of the task that Run is, such as [async.Restart]. A
	// failure before the first Ready is not retried, and neither is one after the turn of
	// the service to stop has come, as in its Drain. When its turn comes between two calls
	// of Run and there is a Drain, Run is called once more, at once, to be drained. A beat that is
	// missed, see [async.Heartbeat], is a failure, also if Run returns nil then.
	Options []async.TaskOption

	// reopened says that a call of Run begins with nothing: no other has to be made to drain it.
	reopened bool

	// unused is called instead of Run if that is never called. It may be nil.
	unused func()
}

// check panics if s cannot be run. It is number i of several.
func (s *Service) check(i int) {
	if s.Run == nil {
		panic(fmt.Sprintf("service: %s has a nil Run: set it to a function that blocks while it serves", s.label(i)))
	}
	if s.Startup < 0 {
		panic(fmt.Sprintf("service: %s has a negative Startup: leave it 0 if it need not call Ready", s.label(i)))
	}
}

// label names s in errors; it is number i, from 0 on, of several.
func (s *Service) label(i int) string {
	if s.Name == "" {
		return fmt.Sprintf("service %d", i+1)
	}
	return "service " + s.Name
}

// An Option changes how [Run] stops its services. Given to [Main] it is the
// default of every Run below. Later options win over earlier ones.
type Option interface{ apply(*options) }

type option func(*options)

func (o option) apply(to *options) { o(to) }

type options struct {
	grace, delay, giveUp, debounce time.Duration
	log                            *slog.Logger // is told what has failed and is started again; nil: the default
	quiet                          bool         // nobody is told
}

// With the 100 ms of [async.Shutdown], less than the 30 s after which Kubernetes
// kills what it has told to stop. Hooks have 5 s, see [async.HookTimeout]: giveUp is
// longer, or chance would decide whether a hook that takes them is a straggler.
var defaults = options{grace: 20 * time.Second, giveUp: 6 * time.Second}

func (o options) with(opts []Option) options {
	for _, opt := range opts {
		if opt == nil {
			panic("service: a nil Option: leave it out")
		}
		opt.apply(&o)
	}
	return o
}

// Forever is a time for [Grace] and [GiveUp] that never passes: what is drained has limits of
// its own, say, and only the second signal is to cut it short.
const Forever = time.Duration(math.MaxInt64)

// after returns a channel that brings the time when d has passed, and what gives the timer
// back. [Forever] needs none.
func after(d time.Duration) (passed <-chan time.Time, stop func()) {
	if d == Forever {
		return nil, func() {}
	}
	timer := time.NewTimer(d)
	return timer.C, func() { timer.Stop() }
}

// Grace is how long all services together have to drain, from the end of [Delay] on.
//
//	service.Run(ctx, services, service.Grace(10*time.Second))
//
// # Details
//
// All that is left after that is cancelled. Defaults to 20 s; 0 or less is no time at
// all, [Forever] sets no limit.
func Grace(d time.Duration) Option { return option(func(o *options) { o.grace = max(d, 0) }) }

// Delay is how long services go on to serve once [IsReady] says false and [Draining] is
// closed, before the first is drained: the time that a load balancer takes to notice.
//
//	service.Run(ctx, services, service.Delay(5*time.Second))
//
// # Details
//
// The delay is skipped if the services were never ready, and it ends when they have all
// ended. Defaults to 0.
func Delay(d time.Duration) Option { return option(func(o *options) { o.delay = max(d, 0) }) }

// GiveUp is how long services may take to return once they were cancelled, before [Run]
// returns without them.
//
//	service.Run(ctx, services, service.GiveUp(10*time.Second))
//
// # Details
//
// Defaults to 6 s, a second more than hooks have: give it more than what
// [async.HookTimeout] gives to any hook of yours, or a hook that takes its time may be
// called a straggler or not. 0 or less is no time at all, and with [Forever] Run waits as
// long as it takes.
func GiveUp(d time.Duration) Option { return option(func(o *options) { o.giveUp = max(d, 0) }) }

// Debounce has a signal not count that comes within d after one that has counted.
//
//	func main() { service.Main(run, service.Debounce(100*time.Millisecond)) }
//
// # Details
//
// One wish may come as several signals. A program that npm or timeout has started gets a
// signal with its process group, and once more from them. It would drop what it has where
// one Ctrl-C is to drain. 100 ms tells such a pair from a person who is in a hurry. The
// option is for [Main], which hears the signals; a Run has no use for it. Defaults to 0:
// every signal counts.
func Debounce(d time.Duration) Option { return option(func(o *options) { o.debounce = max(d, 0) }) }
