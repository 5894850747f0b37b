package page

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
)

// A list is a page of the tasks of a queue in a state.
type list struct {
	look.Filter
	look.Found
	Params string // of the filter, as they are in a URL
	States map[taskqueue.State]int64
	Ages   []age
	Wrong  string // with what was asked for
	Gone   bool   // there is no such queue
}

// An age is a choice of the filter.
type age struct {
	Hours string
	Words string
}

var ages = []age{
	{"", "any age"}, {"1", "over 1 hour"}, {"24", "over 1 day"}, {"168", "over 7 days"}, {"720", "over 30 days"},
}

// filter reads a filter from the parameters of a request.
func filter(q url.Values) (f look.Filter, err error) {
	f = look.Filter{Queue: q.Get("queue"), Type: q.Get("type"), Error: q.Get("error")}
	f.Alike, f.Key = q.Get("alike"), q.Get("key")
	if f.State, err = taskqueue.ParseState(cmp.Or(q.Get("state"), "ready")); err != nil {
		return f, err
	}
	if hours := q.Get("older"); hours != "" {
		n, err := strconv.ParseFloat(hours, 64)
		if err != nil || n < 0 || n > 1e6 {
			return f, &taskqueue.InvalidError{What: "older", Why: "it is a number of hours"}
		}
		f.Older = time.Duration(n * float64(time.Hour))
	}
	return f, taskqueue.CheckName("queue", f.Queue)
}

// params are those that filter reads.
func params(f *look.Filter) url.Values {
	q := url.Values{"queue": {f.Queue}, "state": {f.State.String()}}
	for name, value := range map[string]string{"type": f.Type, "error": f.Error, "alike": f.Alike, "key": f.Key} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Older > 0 {
		q.Set("older", strconv.FormatFloat(f.Older.Hours(), 'f', -1, 64))
	}
	return q
}

// serveList shows the tasks of a queue in a state.
func (p *Page) serveList(w http.ResponseWriter, r *http.Request) {
	l := &list{Ages: ages}
	var err error
	if l.Filter, err = filter(r.URL.Query()); err == nil {
		l.Params = params(&l.Filter).Encode()
		var s *look.Snapshot
		if s, _, err = p.look(r); err == nil {
			err = p.ask(r.Context(), func(ctx context.Context) error {
				return p.fillList(ctx, s, l, r.URL.Query().Get("after"))
			})
		}
	}
	var wrong *taskqueue.InvalidError
	v, code := newView(r, "list", err), status(l.Gone, err)
	if errors.As(err, &wrong) {
		v.Error, l.Wrong, code = "", v.Error, http.StatusBadRequest
	}
	v.List, v.Known = l, err == nil && !l.Gone
	v.Title = l.State.String() + " – " + l.Queue
	p.show(w, code, v)
}

// fillList finds the tasks. The counts are those of the picture, if the queue is in it.
func (p *Page) fillList(ctx context.Context, s *look.Snapshot, l *list, cursor string) error {
	if len(s.Queues) > 0 {
		l.States = s.Queues[0].States
	} else {
		names, err := p.store.Queues(ctx)
		if err != nil {
			return err
		}
		if l.Gone = !p.shows(l.Queue) || !slices.Contains(names, l.Queue); l.Gone {
			return nil
		}
		st, err := p.store.Stats(ctx, l.Queue)
		if err != nil {
			return err
		}
		l.States = st.States
	}
	var err error
	l.Found, err = look.Find(ctx, p.store, l.Filter, cursor, time.Now())
	return err
}

// Tabs are the states of a list.
func (l *list) Tabs() (all []taskqueue.State) {
	return []taskqueue.State{
		taskqueue.StateReady, taskqueue.StateRunning, taskqueue.StateScheduled, taskqueue.StateWaiting,
		taskqueue.StateRetrying, taskqueue.StateDead, taskqueue.StateDone, taskqueue.StateCancelled,
	}
}

// Is reports whether a choice of the filter is the one that is in force.
func (l *list) Is(a age) bool { return params(&l.Filter).Get("older") == a.Hours }

// Next is the URL of what is behind this page.
func (l *list) Next() string {
	q := params(&l.Filter)
	q.Set("after", l.Cursor)
	return "list?" + q.Encode()
}

// At is when a task is or was at the point that its list is about, and what that is.
func (l *list) At(t taskqueue.Info) time.Time {
	switch {
	case t.State.Ended():
		return t.EndedAt
	case t.State == taskqueue.StateRunning:
		return t.StartedAt
	case t.State == taskqueue.StateWaiting:
		return t.EnqueuedAt
	}
	return t.DueAt
}

// Point is what At is of.
func (l *list) Point() string {
	switch {
	case l.State.Ended():
		return "Ended"
	case l.State == taskqueue.StateRunning:
		return "Started"
	case l.State == taskqueue.StateWaiting:
		return "Added"
	}
	return "Due"
}

// About is what else there is to know of a task in the state.
func (l *list) About() string {
	switch l.State {
	case taskqueue.StateWaiting:
		return "Runs after"
	case taskqueue.StateRunning:
		return "Worker"
	}
	return "Last error"
}
