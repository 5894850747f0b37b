package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A deed is something that the page does to tasks.
type deed struct {
	act   store.Act
	label string
	past  string
	can   func(taskqueue.State) bool
}

// deeds are what the page does to tasks, by the value of the parameter do.
var deeds = map[string]deed{
	"retry": {store.ActRetry, "Retry", "retried", func(s taskqueue.State) bool {
		return s == taskqueue.StateDead || s == taskqueue.StateCancelled
	}},
	"run": {store.ActPromote, "Run now", "made due", func(s taskqueue.State) bool {
		return !s.Ended() && s != taskqueue.StateReady && s != taskqueue.StateRunning
	}},
	"cancel": {store.ActCancel, "Cancel", "cancelled, or asked to stop", func(s taskqueue.State) bool { return !s.Ended() }},
	"delete": {store.ActDelete, "Delete", "deleted", func(s taskqueue.State) bool { return s != taskqueue.StateRunning }},
}

// order is that of their buttons.
var order = []string{"retry", "run", "cancel", "delete"}

// serveAct does what a form asks for, and sends the browser back to where that was, which says what was done.
func (p *Page) serveAct(w http.ResponseWriter, r *http.Request) {
	if err := p.forged.Check(r); err != nil {
		p.refuse(w, http.StatusForbidden, "This request comes from another site: nothing was done.")
		return
	}
	q, do := r.URL.Query(), r.PostFormValue("do")
	if !p.shows(q.Get("queue")) {
		p.refuse(w, http.StatusNotFound, "This page does not show that queue: nothing was done.")
		return
	}
	done, err := p.do(r.Context(), q, do)
	p.looker.Stale()
	var wrong *taskqueue.InvalidError
	switch {
	case errors.As(err, &wrong):
		p.refuse(w, http.StatusBadRequest, "Nothing was done: "+err.Error())
	case err != nil && done.N > 0:
		why := fmt.Sprintf("%d tasks were %s, then it failed: %v", done.N, deeds[do].past, err)
		p.refuse(w, http.StatusServiceUnavailable, why)
	case err != nil:
		p.refuse(w, http.StatusServiceUnavailable, "It failed, and may have been done or not: "+err.Error())
	default:
		w.Header().Set("Location", back(q.Get("back"), do, done))
		w.WriteHeader(http.StatusSeeOther)
	}
}

func (p *Page) refuse(w http.ResponseWriter, status int, why string) {
	p.show(w, status, &view{Part: "refused", Error: plain.Line(why)})
}

// do carries out one request.
func (p *Page) do(ctx context.Context, q url.Values, do string) (d look.Done, err error) {
	queue, id := q.Get("queue"), q.Get("id")
	if do == "pause" || do == "resume" {
		err := p.ask(ctx, func(ctx context.Context) error {
			all, err := taskqueue.New(p.store)
			if err == nil {
				err = all.In(queue).Configure(ctx, func(s *taskqueue.Settings) { s.Paused = do == "pause" })
			}
			return err
		})
		return look.Done{N: 1}, err
	}
	what, known := deeds[do]
	if !known {
		return d, &taskqueue.InvalidError{What: "do", Why: "there is nothing of that name to be done"}
	}
	if id == "" {
		f, err := filter(q)
		if err != nil {
			return d, err
		}
		return look.ActAll(ctx, p.store, f, what.act)
	}
	err = p.ask(ctx, func(ctx context.Context) error {
		did, err := p.store.Act(ctx, queue, id, what.act)
		var held *taskqueue.DuplicateError
		switch {
		case errors.As(err, &held):
			d.Held = 1
		case err != nil && !errors.Is(err, taskqueue.ErrNotFound):
			return err
		case err == nil && did:
			d.N = 1
		}
		return nil
	})
	return d, err
}

// back is where a form was, with what was done. It is relative, and so never another site.
func back(at, do string, d look.Done) string {
	path, query, _ := strings.Cut(at, "?")
	if path != "list" && path != "task" && path != "kind" {
		path = "./"
	}
	q, _ := url.ParseQuery(query)
	q.Set("did", do)
	q.Set("n", strconv.Itoa(d.N))
	q.Del("held")
	q.Del("more")
	if d.Held > 0 {
		q.Set("held", strconv.Itoa(d.Held))
	}
	if d.More {
		q.Set("more", "")
	}
	return path + "?" + q.Encode()
}

// did says what was done, from the parameters that back has made: in words of the page alone, since anybody may write
// a link.
func did(q url.Values) string {
	do := q.Get("did")
	switch do {
	case "":
		return ""
	case "pause":
		return "The queue is paused: no worker claims tasks of it. What runs goes on."
	case "resume":
		return "The queue goes on."
	}
	what, known := deeds[do]
	n, err := strconv.Atoi(q.Get("n"))
	if !known || err != nil {
		return ""
	}
	text := fmt.Sprintf("%s tasks were %s.", plain.Count(n), what.past)
	switch n {
	case 0:
		text = "Nothing was done: there is no such task any more, or its state does not allow it."
	case 1:
		text = fmt.Sprintf("1 task was %s.", what.past)
	}
	if held, _ := strconv.Atoi(q.Get("held")); held > 0 {
		if n == 0 {
			text = ""
		}
		text += fmt.Sprintf(" %s left as they are: another task holds their unique key.", plain.Count(held))
	}
	if q.Has("more") {
		text += " There may be more: do it again."
	}
	return strings.TrimSpace(text)
}
