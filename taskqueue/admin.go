package taskqueue

import (
	"context"
	"math"
	"time"

	"github.com/ambit-go/ambit/async"

	"github.com/ambit-go/ambit/taskqueue/store"
)

// Get returns what the store knows of a task; [ErrNotFound] if that is nothing.
func (q *Queue) Get(ctx context.Context, id string) (Info, error) {
	return q.store.Get(ctx, q.name, id)
}

// List returns a page of the tasks in a state, those first that are due or have ended
// first; ready ones that are limited come behind the others, and those that wait for others are in the order of their
// IDs. The Cursor of a page asks for the next; what is added, ends or is deleted
// between two calls may be in both pages or in none. A page may be empty and yet have
// a cursor. A queue without tasks has an empty page.
func (q *Queue) List(ctx context.Context, r ListRequest) (Page, error) {
	if err := checkState(r.State); err != nil {
		return Page{}, err
	}
	if r.Max < 0 {
		return Page{}, invalid("Max", "it is %d: it must be positive, or 0 for 100", r.Max)
	}
	return q.store.List(ctx, q.name, r)
}

func checkState(s State) error {
	if s < StateScheduled || s > StateWaiting {
		return invalid("State", "%v is none: use one from StateScheduled to StateWaiting", s)
	}
	return nil
}

// Stats returns the figures of the queue: how many tasks are in each state, what has
// happened since it was made, and its settings. Those of a queue without tasks are 0.
func (q *Queue) Stats(ctx context.Context) (Stats, error) { return q.store.Stats(ctx, q.name) }

// Cancel ends a task that waits, for its time or for others. The context of one that runs is cancelled with
// [ErrCancelled], when its worker extends the lease next: within 3/10 of that. Whatever
// its handler returns then but nil, it ends as cancelled, and so does one whose worker
// dies. Cancel does not wait for that; see [Queue.Wait]. It reports false if the task
// has ended; the error is [ErrNotFound] if there is none.
func (q *Queue) Cancel(ctx context.Context, id string) (bool, error) {
	return q.store.Act(ctx, q.name, id, store.ActCancel)
}

// Promote makes a task due that waits for its time, or for other tasks: those do not matter to it
// any more. It reports false if it does not wait; the error is [ErrNotFound] if there is none.
func (q *Queue) Promote(ctx context.Context, id string) (bool, error) {
	return q.store.Act(ctx, q.name, id, store.ActPromote)
}

// Retry makes a dead or cancelled task due, with its counts of failures and crashes at 0;
// Attempt goes on. It reports false
// if the task is neither. If another task holds its unique key by now nothing is
// changed, and the error is a [*DuplicateError]; it is [ErrNotFound] if there is no
// such task. The tasks that it was to run after do not matter to it any more. Those that were
// cancelled because it had failed stay so: retry them, too, before they are forgotten, which is after
// their Retention, or a minute.
func (q *Queue) Retry(ctx context.Context, id string) (bool, error) {
	return q.store.Act(ctx, q.name, id, store.ActRetry)
}

// Delete forgets a task and its result. It reports false if the task runs: cancel it
// first. The error is [ErrNotFound] if there is none.
func (q *Queue) Delete(ctx context.Context, id string) (bool, error) {
	return q.store.Act(ctx, q.name, id, store.ActDelete)
}

// Pause stops all workers from claiming tasks of the queue; what runs goes on. It is
// kept in the store until Resume. Tasks can be added meanwhile.
func (q *Queue) Pause(ctx context.Context) error {
	return q.Configure(ctx, func(s *Settings) { s.Paused = true })
}

// Resume is the inverse of Pause. Workers that wait claim at once.
func (q *Queue) Resume(ctx context.Context) error {
	return q.Configure(ctx, func(s *Settings) { s.Paused = false })
}

// Configure changes the settings of the queue, for all processes, by what f makes of
// them. f is called with no lock held, and again if somebody else has changed them
// meanwhile. Settings that are not valid change nothing: the error is an
// [*InvalidError]. Nil panics.
func (q *Queue) Configure(ctx context.Context, f func(*Settings)) error {
	if f == nil {
		panic("taskqueue: Configure(nil): pass a function that changes the settings")
	}
	for {
		now, err := q.store.Stats(ctx, q.name)
		if err != nil {
			return err
		}
		set := now.Settings
		f(&set)
		if done, err := q.store.Configure(ctx, q.name, now.Settings, set); done || err != nil {
			return err
		}
	}
}

// CheckSettings checks what Configure is to set.
func CheckSettings(s Settings) error {
	switch {
	case math.IsNaN(s.Rate) || math.IsInf(s.Rate, 0) || s.Rate < 0:
		return invalid("Rate", "it is %v: it must be a number of claims a second, or 0 for no limit", s.Rate)
	case s.Rate > 0 && s.Rate < minRate:
		return invalid("Rate", "it is %v: it must be at least %v, one claim in about a year", s.Rate, minRate)
	case s.Burst < 0:
		return invalid("Burst", "it is %d: it must be positive, or 0 for 1", s.Burst)
	case s.Concurrency < 0:
		return invalid("Concurrency", "it is %d: it must be positive, or 0 for no limit; Pause stops the queue", s.Concurrency)
	case s.MaxDead < 0:
		return invalid("MaxDead", "it is %d: it must be positive, or 0 to keep all", s.MaxDead)
	case s.DeadRetention < 0:
		return invalid("DeadRetention", "it is %v: it must be positive, or 0 to keep them for ever", s.DeadRetention)
	}
	return nil
}

// minRate keeps the time of the next claim in bounds.
const minRate = 3e-8

// Purge deletes all tasks in a state and returns how many there were: in several steps,
// so after an error some are deleted. A task that comes to the state meanwhile may be left.
// Running ones cannot be: that is an [*InvalidError].
func (q *Queue) Purge(ctx context.Context, s State) (n int, err error) {
	if err := checkState(s); err != nil {
		return 0, err
	}
	for cursor := ""; ; {
		some, next, err := q.store.Purge(ctx, q.name, s, cursor)
		n += some
		if err != nil || next == "" {
			return n, err
		}
		cursor = next
	}
}

// Wait returns what is known of a task when it has ended: State says how, LastError
// why, and Result is what its handler has left. It looks again and again, at growing
// intervals of at most a second, until ctx is done: then the error is the cause of
// that, and the task goes on. It is [ErrNotFound] if there is no such task, or no more:
// give a task whose end is waited for a Retention.
//
// A handler may wait for other tasks, but keeps its place meanwhile: if all places of
// all workers are taken by those who wait nothing goes on. A wait of a handler for its own task is
// [ErrSelfWait].
func (q *Queue) Wait(ctx context.Context, id string) (Info, error) {
	if c := ClaimOf(ctx); c != nil && c.shared == q.shared && c.Queue == q.name && c.ID == id {
		return Info{}, ErrSelfWait
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		i, err := q.Get(ctx, id)
		if err != nil || i.State.Ended() {
			return i, err
		}
		if async.Sleep(ctx, wait) != nil {
			return i, context.Cause(ctx)
		}
	}
}
