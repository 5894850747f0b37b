package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

// maxShown is how much of a payload, a result or an error is shown, in bytes.
const maxShown = 64 << 10

// A task is one that is shown.
type task struct {
	taskqueue.Info
	ID      string // that was asked for
	Found   bool
	Parents []parent
	Others  []taskqueue.Info // tasks of this ID in other queues
	Skipped []taskqueue.Info // after it, of those that were cancelled last
}

// A parent is a task that a task is to run after.
type parent struct {
	ID    string
	State taskqueue.State // 0: it is not known
	Error string
}

// serveTask shows a task, which is looked for in all queues if none is named.
func (p *Page) serveTask(w http.ResponseWriter, r *http.Request) {
	t := &task{ID: r.URL.Query().Get("id")}
	queue := r.URL.Query().Get("queue")
	err := p.ask(r.Context(), func(ctx context.Context) error { return p.fillTask(ctx, t, queue) })
	v := newView(r, "task", err)
	v.Task, v.Known, v.Title = t, err == nil, t.ID
	p.show(w, status(!t.Found, err), v)
}

func (p *Page) fillTask(ctx context.Context, t *task, queue string) error {
	queues := []string{queue}
	if queue == "" {
		queues = p.queues
	}
	if len(queues) == 0 {
		var err error
		if queues, err = p.store.Queues(ctx); err != nil {
			return err
		}
	}
	for _, name := range queues {
		i, err := p.store.Get(ctx, name, t.ID)
		var wrong *taskqueue.InvalidError
		switch {
		case errors.Is(err, taskqueue.ErrNotFound), errors.As(err, &wrong), !p.shows(name):
		case err != nil:
			return err
		case t.Found:
			t.Others = append(t.Others, i)
		default:
			t.Info, t.Found = i, true
		}
	}
	for _, id := range t.After {
		i, err := p.store.Get(ctx, t.Queue, id)
		if err != nil && !errors.Is(err, taskqueue.ErrNotFound) {
			return err
		}
		t.Parents = append(t.Parents, parent{id, i.State, i.LastError})
	}
	return p.fillSkipped(ctx, t)
}

// fillSkipped finds the tasks that were cancelled because t had failed, and are not forgotten yet.
func (p *Page) fillSkipped(ctx context.Context, t *task) error {
	if t.State != taskqueue.StateDead && t.State != taskqueue.StateCancelled {
		return nil
	}
	last, err := p.store.List(ctx, t.Queue, taskqueue.ListRequest{State: taskqueue.StateCancelled, Max: 100, Reverse: true})
	for _, other := range last.Tasks {
		if slices.Contains(other.After, t.Info.ID) && other.OnFailed == taskqueue.OnFailedSkip {
			t.Skipped = append(t.Skipped, other)
		}
	}
	return err
}

// A moment is a time in the life of a task.
type moment struct {
	At   time.Time
	Text string
}

// History is what is known of a task's life, in the order of time. A store keeps the last run of a task, and counts the
// others.
func (t *task) History() (all []moment) {
	add := func(at time.Time, format string, args ...any) {
		if !at.IsZero() {
			all = append(all, moment{at, fmt.Sprintf(format, args...)})
		}
	}
	add(t.EnqueuedAt, "added to queue %s", t.Queue)
	if len(t.After) > 0 {
		all[0].Text += ", to run after " + plain.Of(len(t.After), "other")
	}
	before := max(t.Attempt-1, 0)
	if t.StartedAt.IsZero() {
		before = t.Attempt
	}
	if before > 0 {
		add(t.EnqueuedAt, "%s before the last", plain.Of(before, "run"))
		all[len(all)-1].At = time.Time{}
	}
	add(t.StartedAt, "run %d began on worker %s", max(t.Attempt, 1), t.Worker)
	switch {
	case t.State == taskqueue.StateRunning:
		add(t.LeaseEnd, "its lease ends, if it is not extended")
	case t.State == taskqueue.StateWaiting:
	case t.State.Ended():
		add(t.EndedAt, "%v", t.State)
	default:
		add(t.DueAt, "due to run")
	}
	return all
}

// A blob is bytes that a task brings along, as they can be shown.
type blob struct {
	Name string
	Text string
	Size int
	Cut  bool
}

// Blobs are those that a task has.
func (t *task) Blobs() (all []blob) {
	for _, b := range []struct {
		name  string
		bytes []byte
	}{{"Payload", t.Payload}, {"Progress", t.Progress}, {"Result", t.Result}} {
		if len(b.bytes) > 0 || b.name == "Payload" {
			all = append(all, blob{b.name, readable(b.bytes), len(b.bytes), len(b.bytes) > maxShown})
		}
	}
	return all
}

// readable is JSON in lines, text as it is, and other bytes in hexadecimal.
func readable(b []byte) string {
	if len(b) > maxShown {
		b = b[:maxShown]
	}
	var lines bytes.Buffer
	if json.Indent(&lines, b, "", "  ") == nil && lines.Len() <= 2*maxShown {
		return plain.Text(lines.String())
	}
	if !utf8.Valid(b[:max(len(b)-utf8.UTFMax, 0)]) {
		return fmt.Sprintf("% x", b[:min(len(b), 1024)])
	}
	return plain.Text(string(b))
}

// Earlier reports whether Reason is that of a run before the last, which has gone well or has not ended.
func (t *task) Earlier() bool {
	return t.State == taskqueue.StateDone || t.State == taskqueue.StateRunning
}

// Reason is why the task has failed last.
func (t *task) Reason() string { return plain.Text(plain.Head(t.LastError, maxShown)) }
