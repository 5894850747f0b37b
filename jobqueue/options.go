package jobqueue

import (
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

// An Option changes a queue. If there are two of a kind the last one counts. Options with
// functions of jobs must be of the job type of the queue, or its making panics.
type Option interface{ apply(*options) }

type option func(*options)

func (o option) apply(opts *options) { o(opts) }

// options are what the options of a queue say. Those about jobs are functions of
// a type that is not known here.
type options struct {
	rules
	dead     any
	retry    async.Interval
	priority any
	observer any
}

// Policy is what adding a job does while one with its key is in progress.
type Policy uint8

// Policies of [WhileRunning].
const (
	Reject   Policy = iota // do not accept it
	RunAgain               // accept it, and run the newest after the one in progress has ended
)

// WhileRunning sets what adding a job does while one with its key is in progress.
//
//	jobqueue.New[string](jobqueue.WhileRunning(jobqueue.RunAgain))
//
// # Details
//
// The default is [Reject]. With [RunAgain] the job is accepted, and however many are
// added, one run follows: of the newest of them, at the earliest time that one of
// them was to be taken.
//
//   - If the run in progress is the last one, because it ends well or its job is
//     dead, the newest is queued as a job of its own, at the end of the queue.
//   - If the job in progress goes back, its retry is the run that follows: the
//     newest job takes the old one's place, with its attempts and its
//     [RetryDelay]. The old one does not run any more.
func WhileRunning(p Policy) Option {
	if p > RunAgain {
		panic("jobqueue: WhileRunning: the policy must be Reject or RunAgain")
	}
	return option(func(o *options) { o.again = p == RunAgain })
}

// MaxAttempts has a job given up when n of its runs have failed: it is removed, and
// dead, which may be nil, is called with the job and the error of its last run.
//
//	jobqueue.New[string](jobqueue.MaxAttempts(5, func(file string, err error) { log.Print(file, ": ", err) }))
//
// # Details
//
// dead is called with no lock held: on the goroutine of [Queue.Nack], or in an exit
// hook of the scope that took the job. A run that was told to stop has not failed.
// n < 1 panics.
func MaxAttempts[T any](n int, dead func(job T, err error)) Option {
	if n < 1 {
		panic("jobqueue: MaxAttempts(n): n must be at least 1; leave the option out for no limit")
	}
	return option(func(o *options) {
		o.attempts, o.dead = n, nil
		if dead != nil {
			o.dead = dead
		}
	})
}

// RetryDelay has a job whose run failed wait before it may be taken again.
//
//	jobqueue.New[string](jobqueue.RetryDelay(async.Backoff(time.Second, time.Minute)))
//
// # Details
//
// interval is given how many runs of the job have failed, and returns how long the
// job waits. After that the job is in its old place. Without this option the job may
// be taken again at once. interval is called with no lock held. Nil panics.
func RetryDelay(interval async.Interval) Option {
	if interval == nil {
		panic("jobqueue: RetryDelay(nil): leave the option out for no delay")
	}
	return option(func(o *options) { o.retry = interval })
}

// Capacity bounds how many jobs may be queued, delayed ones included; those in
// progress do not count.
//
//	jobqueue.New[string](jobqueue.Capacity(1000))
//
// # Details
//
// A full queue rejects what is added. A job that fails still goes back, beyond n if
// need be, and so does a second run. n < 1 panics.
func Capacity(n int) Option {
	if n < 1 {
		panic("jobqueue: Capacity(n): n must be at least 1; leave the option out for no limit")
	}
	return option(func(o *options) { o.capacity = n })
}

// Priority has f say how urgent a job is: of two, the one with the greater number is
// taken first, of equals the one that came first.
//
//	jobqueue.New[Job](jobqueue.Priority(func(job Job) int { return job.Urgency }))
//
// # Details
//
// f is called once each time that a job is to be added, with no lock held. Nil
// panics.
func Priority[T any](f func(job T) int) Option {
	if f == nil {
		panic("jobqueue: Priority(nil): leave the option out for first in, first out")
	}
	return option(func(o *options) { o.priority = f })
}

// Observe has f told what becomes of every job.
//
//	jobqueue.New[string](jobqueue.Observe(func(e jobqueue.Event[string]) { log.Print(e.Kind, " ", e.Job) }))
//
// # Details
//
// f is called after the fact, with no lock held, on the goroutine that has done it;
// for the end of a scope, in an exit hook of the scope. It must not block.
//
// Events of one call come in order. A Take that waited returns after f was told of
// what it took. Otherwise events of different goroutines come in any order.
//
// A panic of f goes on in the function that has called f. If a delayed job is handed
// to a waiting Take that function is a timer's, and the process ends. Nil panics.
func Observe[T any](f func(Event[T])) Option {
	if f == nil {
		panic("jobqueue: Observe(nil)")
	}
	return option(func(o *options) { o.observer = f })
}

// An Event is what has become of a job.
type Event[T any] struct {
	Kind    EventKind
	Job     T
	Attempt int           // how often the job was taken so far
	Queued  time.Duration // Taken: how long it had been ready
	Ran     time.Duration // Done, Failed, Stopped, Dead: how long it was in progress
	Err     error         // Rejected, Failed, Stopped, Dead: why
}

// EventKind says what has become of a job.
type EventKind uint8

// The kinds of events.
const (
	Added    EventKind = iota // accepted, for now or for later
	Rejected                  // not accepted: ErrDuplicate, ErrFull, ErrKey or ErrClosed
	Taken                     // taken by a scope
	Done                      // it ended well
	Failed                    // its run failed; it goes back, now or after a delay
	Stopped                   // its run was told to stop; it goes back now
	Dead                      // its last run failed: see MaxAttempts
	Removed                   // removed before it was taken
)

// String returns the kind in lower case: "added".
func (k EventKind) String() string {
	return [...]string{"added", "rejected", "taken", "done", "failed", "stopped", "dead", "removed"}[k]
}

// typed returns f as an F; f is what the named option was given.
func typed[F any](option string, f any) F {
	if f == nil {
		var none F
		return none
	}
	g, ok := f.(F)
	if !ok {
		panic(fmt.Sprintf("jobqueue: %s was given a %T, but a queue of such jobs needs a %T", option, f, g))
	}
	return g
}
