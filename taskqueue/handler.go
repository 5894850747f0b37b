package taskqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/lease"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A Handler runs a task. The error that it returns decides what becomes of the task:
//
//   - nil: it is done.
//   - an error: it has failed. It runs again after the worker's backoff, or is a
//     dead letter after MaxFailures. [RetryAfter], [Dead], [Release] and [Snooze]
//     make errors that say something else.
//
// A panic is a failure, and so is runtime.Goexit, and the error of something that the
// handler has started with async.Go. If the worker has stopped the run, and the error
// comes of that, the task has not failed: it is given back, or cancelled.
//
// ctx is a scope of package async: what the handler starts with it is joined
// before the task is settled. It is cancelled with [ErrLeaseLost], [ErrCancelled],
// [ErrStopping], or an [*async.TimeoutError] when the task's Timeout has passed.
//
// A task may run more than once: after a crash, or when its worker could not reach
// the store in time. Make the effect the same when it is repeated, with the ID of
// the task; or give c.Token to what the handler writes to, which then refuses a
// token that is less than the greatest it has seen.
type Handler func(ctx context.Context, c *Claim) error

// Handlers are the handlers by the type of task.
type Handlers map[string]Handler

// A Claim is one run of a task.
type Claim struct {
	Task
	Attempt  int   // 1 for the first run; runs that were given back do not count
	Failures int   // of the runs before
	Crashes  int   // of the runs before
	Token    int64 // greater than that of any run before, in the whole queue
	DueAt    time.Time

	ref      store.Ref // of the run, whatever middleware makes of ID and Token
	releases int       // how many times in a row the task was given back
	shared   *shared

	lease *lease.Lease // nil: it is of no worker
	clock *lease.Clock

	mu       sync.Mutex
	result   []byte
	progress []byte
	moved    bool  // progress has not been told to the store yet
	wrong    error // of SetResult or Progress: a dead letter, whatever the handler returns
}

// Deadline returns when the lease runs out, by the clock of this process, unless it
// is extended before, which the worker does by itself.
func (c *Claim) Deadline() time.Time {
	if c.lease == nil {
		return time.Time{}
	}
	return clock.Now().Add(c.lease.Term().End() - c.clock.Now())
}

// SetResult sets what is kept with the task when it is done, for its Retention, and
// given to those who [Queue.Wait]. The last call counts; b is copied. A run that does
// not end well leaves no result. One that is longer than [MaxResult] makes a dead
// letter that says so: store it elsewhere, and keep where it is.
func (c *Claim) SetResult(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(b) > MaxResult {
		c.wrong = tooLong("SetResult", len(b), MaxResult)
		return
	}
	c.result = slices.Clone(b)
}

// Progress notes how far the task is, for those who look; b is copied. It is told to
// the store with the next extension of the lease, of which there are three in a
// lease. One that is longer than [MaxProgress] makes a dead letter that says so.
func (c *Claim) Progress(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(b) > MaxProgress {
		c.wrong = tooLong("Progress", len(b), MaxProgress)
		return
	}
	c.progress, c.moved = slices.Clone(b), true
}

// untold notes that the store was not told what it should have been.
func (c *Claim) untold(progress map[string][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, sent := progress[c.ref.ID]; sent {
		c.moved = true
	}
}

func tooLong(what string, n, most int) error {
	return invalid(what, "it has %d bytes, at most %d are allowed: store it elsewhere and keep where it is", n, most)
}

type claimKey struct{}

// ClaimOf returns the claim that ctx is of: that which the handler was given whose
// ctx it is, or is derived from. It is nil if there is none. With it handlers that are
// [Typed], and what they call, know the ID, the token and the attempt.
func ClaimOf(ctx context.Context) *Claim {
	c, _ := ctx.Value(claimKey{}).(*Claim)
	return c
}

// Typed returns a handler whose payload is JSON. A payload that is not, or not that of
// a P, makes a dead letter: another run would not change that. [ClaimOf] gives f the
// rest. A nil f panics.
func Typed[P any](f func(ctx context.Context, p P) error) Handler {
	if f == nil {
		panic("taskqueue: Typed(nil): pass the function that runs the task")
	}
	return Kind[P]("").handler(f)
}

// Use returns the handlers with the middleware around each of them, the first
// outermost. The handlers themselves are not changed, so it can be used more than
// once, with other middleware for other types. The middleware around a handler runs in the
// same scope and may change its error, its ctx and the claim. Nil middleware panics; a
// nil handler stays nil, which Work refuses.
func (h Handlers) Use(around ...func(Handler) Handler) Handlers {
	for _, f := range around {
		if f == nil {
			panic("taskqueue: Use(nil): leave the middleware out instead")
		}
	}
	all := Handlers{}
	for name, f := range h {
		for i := len(around) - 1; i >= 0 && f != nil; i-- {
			f = around[i](f)
		}
		all[name] = f
	}
	return all
}

// outcome returns what is told to the store of a run that has ended with err. cause
// is why its context was cancelled; nil: it was not.
func (c *Claim) outcome(err, cause error, backoff func(failures int) time.Duration) store.Outcome {
	o := store.Outcome{Ref: c.ref, Kind: store.Succeeded}
	c.mu.Lock()
	if err == nil && c.wrong != nil {
		err = Dead(c.wrong)
	}
	if err == nil {
		o.Result = c.result
	}
	c.mu.Unlock()
	if err == nil {
		return o
	}
	o.Kind, o.Error = store.Failed, text(err)
	d, stopped := classify(err, cause)
	switch {
	case d != nil && d.kind == store.Released:
		o.Kind, o.After = store.Released, unknownBackoff(c.releases)
	case d != nil && (d.timed || d.kind != store.Failed):
		o.Kind, o.After = d.kind, clampWait(d.after)
	case stopped:
		o.Kind = store.Stopped
	default:
		o.After = clampWait(backoff(c.Failures + 1))
	}
	return o
}

// classify finds out what err says: what is to become of the task, and whether it
// comes of cause, with which the worker has stopped the run. It asks methods of errors
// that are the handler's, which may panic: then the run has failed, and no more.
func classify(err, cause error) (d *directed, stopped bool) {
	defer func() {
		if recover() != nil {
			d, stopped = nil, false
		}
	}()
	if errors.As(err, &d) {
		return d, false
	}
	return nil, (cause == ErrStopping || cause == ErrCancelled) && errors.Is(err, cause)
}

// maxErrorText bounds what is kept of an error.
const maxErrorText = 4 << 10

// text returns the text of a handler's error, whose method may panic.
func text(err error) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = fmt.Sprintf("the Error method of a %T has panicked: %v", err, p)
		}
	}()
	s = err.Error()
	if len(s) > maxErrorText {
		s = strings.ToValidUTF8(s[:maxErrorText], "") + " …"
	}
	return s
}
