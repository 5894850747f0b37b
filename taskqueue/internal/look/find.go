package look

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// Bounds of one search, and of one act on many tasks.
const (
	pageSize  = 50
	maxLooked = 2000
	MaxActs   = 1000
	acting    = 20 * time.Second
)

// A Filter says which tasks of a queue are meant, in one state.
type Filter struct {
	Queue string
	State taskqueue.State
	Type  string        // "": every type
	Error string        // what LastError contains
	Alike string        // what errors have in common: see Alike
	Key   string        // the LimitKey or the UniqueKey
	Older time.Duration // that have ended, or have been enqueued if they have not, so long ago; 0: whenever
}

// Any reports whether all tasks of the queue in the state are meant.
func (f *Filter) Any() bool {
	return *f == Filter{Queue: f.Queue, State: f.State}
}

func (f *Filter) has(i *taskqueue.Info, now time.Time) bool {
	at := i.EnqueuedAt
	if i.State.Ended() {
		at = i.EndedAt
	}
	return (f.Type == "" || i.Type == f.Type) &&
		strings.Contains(i.LastError, f.Error) && (f.Alike == "" || Alike(i.LastError) == f.Alike) &&
		(f.Key == "" || i.LimitKey == f.Key || i.UniqueKey == f.Key) && (f.Older == 0 || now.Sub(at) >= f.Older)
}

// Found is a page of a list.
type Found struct {
	Tasks  []taskqueue.Info
	Looked int    // at how many tasks
	Cursor string // asks for what is behind them; none: there is nothing
}

// Find returns tasks that a filter means, behind a cursor: those that ended last first, else those that are next. It
// looks at a bounded number of tasks.
func Find(ctx context.Context, store taskqueue.Store, f Filter, cursor string, now time.Time) (Found, error) {
	r := taskqueue.ListRequest{State: f.State, Cursor: cursor, Max: pageSize, Reverse: f.State.Ended()}
	if !f.Any() {
		r.Max = 2 * pageSize
	}
	found := Found{}
	for {
		page, err := store.List(ctx, f.Queue, r)
		if err != nil {
			return found, err
		}
		found.Looked += len(page.Tasks)
		for i := range page.Tasks {
			if f.has(&page.Tasks[i], now) {
				found.Tasks = append(found.Tasks, page.Tasks[i])
			}
		}
		r.Cursor, found.Cursor = page.Cursor, page.Cursor
		if r.Cursor == "" || len(found.Tasks) >= pageSize || found.Looked >= maxLooked {
			return found, nil
		}
	}
}

// Done is what became of an act on many tasks.
type Done struct {
	N    int  // how many it was done to
	Held int  // how many were not retried, because another task holds their unique key
	More bool // there may be more: the act was ended by its bounds
}

// ActAll does an act to tasks that a filter means: up to MaxActs of them, of ten times as many at which it looks, for
// as long as somebody waits for an answer. After an error some are done.
func ActAll(ctx context.Context, s taskqueue.Store, f Filter, act store.Act) (d Done, err error) {
	now := time.Now()
	st, err := s.Stats(ctx, f.Queue)
	if err != nil {
		return d, err
	}
	until := now.Add(acting)
	left := st.States[f.State] // what comes back meanwhile, because it fails again, is left alone
	for r := (taskqueue.ListRequest{State: f.State}); left > 0; {
		call, cancel := Patience(ctx)
		page, err := s.List(call, f.Queue, r)
		cancel()
		if err != nil {
			return d, err
		}
		for i := range page.Tasks {
			if left--; left < 0 {
				return d, nil
			}
			if st.States[f.State]-left > 10*MaxActs || d.N >= MaxActs || time.Now().After(until) {
				d.More = true
				return d, nil
			}
			if !f.has(&page.Tasks[i], now) {
				continue
			}
			did, err := s.Act(ctx, f.Queue, page.Tasks[i].ID, act)
			var held *taskqueue.DuplicateError
			switch {
			case errors.As(err, &held):
				d.Held++
			case err != nil && !errors.Is(err, taskqueue.ErrNotFound):
				return d, err
			case did && err == nil:
				d.N++
			}
		}
		if r.Cursor = page.Cursor; r.Cursor == "" {
			break
		}
	}
	return d, nil
}
