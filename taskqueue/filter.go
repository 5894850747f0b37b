package taskqueue

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue/store"
)

// A Filter says which tasks of a queue are meant. The zero value means all that the act can be
// done to.
type Filter struct {
	State  State     // 0: every state in which the act can be done
	Type   string    // "": every type
	Error  string    // what LastError contains
	Before time.Time // that have ended, or have been enqueued if they have not, before; zero: whenever
}

func (f *Filter) has(i *Info) bool {
	at := i.EnqueuedAt
	if i.State.Ended() {
		at = i.EndedAt
	}
	return (f.Type == "" || i.Type == f.Type) && strings.Contains(i.LastError, f.Error) &&
		(f.Before.IsZero() || at.Before(f.Before))
}

// RetryAll has the dead and the cancelled tasks run again that the filter finds, with their counts
// at 0, and returns how many. One whose unique key another task holds is left.
//
// It goes on in small steps until it has looked at as many tasks as there were when it began: after
// an error n tasks are done, and the call may be repeated. A task that comes to be meanwhile may be
// left. A State in which no task can be retried is an [*InvalidError].
func (q *Queue) RetryAll(ctx context.Context, f Filter) (n int, err error) {
	return q.actAll(ctx, store.ActRetry, f, StateDead, StateCancelled)
}

// CancelAll is [Queue.Cancel] of all tasks that wait or run and that the filter finds; it goes on as
// [Queue.RetryAll] does.
func (q *Queue) CancelAll(ctx context.Context, f Filter) (n int, err error) {
	return q.actAll(ctx, store.ActCancel, f, StateWaiting, StateScheduled, StateRetrying, StateReady, StateRunning)
}

// DeleteAll is [Queue.Delete] of all tasks that do not run and that the filter finds; it goes on as
// [Queue.RetryAll] does. For all tasks of a state [Queue.Purge] is faster.
func (q *Queue) DeleteAll(ctx context.Context, f Filter) (n int, err error) {
	return q.actAll(ctx, store.ActDelete, f, StateWaiting, StateScheduled, StateRetrying, StateReady, StateDone, StateDead, StateCancelled)
}

// actAll does an act to the tasks in states that f finds. A task that goes on by itself goes on to one of the states
// behind its own.
func (q *Queue) actAll(ctx context.Context, act store.Act, f Filter, states ...State) (n int, err error) {
	stats, err := q.Stats(ctx)
	if err != nil {
		return 0, err
	}
	known, left := false, int64(0) // left are those that have gone on to a state behind
	for _, s := range states {
		if f.State != 0 && f.State != s {
			continue
		}
		known = true
		var some int
		some, left, err = q.actOn(ctx, act, f, s, stats.States[s]+left)
		if n += some; err != nil {
			return n, err
		}
	}
	if !known {
		return 0, invalid("State", "there is nothing to be done to tasks that are %v", f.State)
	}
	return n, nil
}

// actOn does an act to those of the first tasks in a state that f finds. left is how many fewer there are in the state.
func (q *Queue) actOn(ctx context.Context, act store.Act, f Filter, s State, first int64) (n int, left int64, err error) {
	for r := (ListRequest{State: s}); first > 0; {
		page, err := q.List(ctx, r)
		if err != nil {
			return n, first, err
		}
		for i := range page.Tasks {
			if first == 0 {
				break
			}
			first--
			if !f.has(&page.Tasks[i]) {
				continue
			}
			did, err := q.store.Act(ctx, q.name, page.Tasks[i].ID, act)
			var held *DuplicateError
			if err != nil && !errors.Is(err, ErrNotFound) && !errors.As(err, &held) {
				return n, first, err
			}
			if did && err == nil {
				n++
			}
		}
		if r.Cursor = page.Cursor; r.Cursor == "" {
			break
		}
	}
	return n, first, nil
}
