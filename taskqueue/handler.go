package taskqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Handler runs a task. What it returns decides what becomes of the task:
//
//   - nil: it is done.
//   - an error: it has failed. It runs again after the worker's backoff, or is a
//     dead letter after MaxFailures. [RetryAfter], [Dead], [Release] and [Snooze]
//     make errors that say something else.
//
// A panic is a failure, and so is runtime.Goexit.
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

	mu       sync.Mutex
	deadline time.Time
	result   []byte
	progress []byte
	moved    bool // progress has not been told to the store yet
}

// Deadline returns when the lease runs out, by the clock of this process, unless it
// is extended before, which the worker does by itself.
func (c *Claim) Deadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadline
}

// SetResult sets what is kept with the task when it is done, for its Retention.
func (c *Claim) SetResult(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result = b
}

// Progress notes how far the task is, for those who look. It is told to the store
// with the next extension of the lease.
func (c *Claim) Progress(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress, c.moved = b, true
}

// Typed returns a handler whose payload is JSON. A payload that is not makes a dead
// letter: another run would not change that.
func Typed[P any](f func(ctx context.Context, p P) error) Handler {
	return func(ctx context.Context, c *Claim) error {
		var p P
		if err := json.Unmarshal(c.Payload, &p); err != nil {
			return Dead(fmt.Errorf("taskqueue: the payload of a task of type %q is not what its handler takes: %w", c.Type, err))
		}
		return f(ctx, p)
	}
}

// Use returns the handlers with the middleware around each of them, the first
// outermost.
func (h Handlers) Use(around ...func(Handler) Handler) Handlers {
	all := Handlers{}
	for name, f := range h {
		for i := len(around) - 1; i >= 0; i-- {
			f = around[i](f)
		}
		all[name] = f
	}
	return all
}

// outcome returns what is told to the store of a run that has ended with err.
func (c *Claim) outcome(err error, backoff func(failures int) time.Duration) Outcome {
	o := Outcome{Ref: Ref{c.ID, c.Token}, Kind: Succeeded}
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.Result = c.result
		return o
	}
	o.Kind, o.Error = Failed, text(err)
	var d *directed
	switch {
	case errors.As(err, &d):
		o.Kind, o.After = d.kind, d.after
		if d.kind == Released {
			o.After = unknownBackoff(0)
		}
		if d.timed || d.kind != Failed {
			return o
		}
	case errors.Is(err, ErrStopping), errors.Is(err, ErrCancelled):
		o.Kind = Stopped
		return o
	}
	o.After = backoff(c.Failures + 1)
	return o
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
		s = s[:maxErrorText] + " …"
	}
	return s
}
