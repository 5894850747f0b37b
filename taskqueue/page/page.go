// Package page shows a store in a browser, and to Prometheus. It only reads, unless it is given
// [AllowActions].
//
//	p := page.New(store)
//	http.Handle("/tasks/", http.StripPrefix("/tasks", p))
//
// A Page answers GET and HEAD of
//
//	/          what fails, by type and error; the types; queues, workers, tasks that others wait for,
//	           limits of keys and types, schedules; ?queue=name shows one queue
//	/list      the tasks of a queue in a state, by type, error, key and age
//	/task      a task: ?queue=name&id=id, or ?id=id in all queues
//	/kind      charts of a type: how many runs, how late, how long
//	/metrics   the figures in the text format of Prometheus
//	/api       all that the first page shows, as JSON; ?queue=name here, too
//	/healthz   200 if the store answers, 503 if it does not
//
// Each page is one document without anything from elsewhere. It works without
// JavaScript, and renews itself with it.
//
// # What it costs
//
// For the first page the store is asked at most once a second, and never while an earlier question is
// open, however many look. One look is at most 100 queues, and in each of them 200 tasks
// of a state. A list and a task are asked for when somebody looks at them, four at a time: up to 50 tasks, or up to
// 2,000 among which those are that a filter finds.
//
// Charts are made of what workers note once in ten seconds. A queue keeps that for 100 types, and for the
// others together: minutes for 6 hours, ten minutes for 2 days, hours for 30 days.
//
// # Who may see it
//
// Whoever reaches the handler sees the ids, errors and payloads of all
// queues: there is no password. Put the handler behind one, or listen on 127.0.0.1, as
// taskq serve does. Text that tasks bring along is escaped, and a Content-Security-Policy
// keeps the browser from running or loading anything else.
package page

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

// A Page is a handler that shows a store. It may serve any number of requests at a
// time, and needs no closing.
type Page struct {
	store  taskqueue.Store
	looker *look.Looker
	name   string
	queues []string
	acts   bool
	forged http.CrossOriginProtection
	places chan struct{} // of those who ask the store for a list or a task
}

// An Option changes a Page.
type Option func(*Page)

// Queues says which queues are shown, and acted on. Defaults to all, and for the first page to the first
// 100 of those by name.
func Queues(names ...string) Option {
	return func(p *Page) { p.queues = append([]string(nil), names...) }
}

// Name is what the page calls the store. It is shown to everybody: leave passwords out.
func Name(name string) Option { return func(p *Page) { p.name = name } }

// AllowActions lets whoever sees the page retry, run, cancel and delete tasks, one or all that a filter
// finds, and pause queues. A request that another site has a browser send is refused, by
// [http.CrossOriginProtection].
func AllowActions() Option { return func(p *Page) { p.acts = true } }

// New returns the page of a store, which stays the caller's to close.
func New(store taskqueue.Store, opts ...Option) *Page {
	if store == nil {
		panic("page: New with a nil store: pass what sqlstore.OpenFile or redisstore.New return")
	}
	p := &Page{store: store, places: make(chan struct{}, 4)}
	for _, opt := range opts {
		opt(p)
	}
	p.looker = look.New(store, p.queues...)
	return p
}

// ServeHTTP is a method of [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	path := strings.TrimPrefix(r.URL.Path, "/")
	switch {
	case r.Method == http.MethodPost && path == "act" && p.acts:
		p.serveAct(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page only shows: taskq serve -act, or AllowActions, has it act, too", http.StatusMethodNotAllowed)
		return
	}
	switch path {
	case "":
		p.serveOverview(w, r)
	case "list":
		p.serveList(w, r)
	case "task":
		p.serveTask(w, r)
	case "kind":
		p.serveKind(w, r)
	case "metrics":
		s, _, err := p.look(r)
		answer(w, http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", metrics(s, err))
	case "api":
		p.serveJSON(w, r)
	case "healthz":
		p.serveHealth(w, r)
	default:
		const what = "there is nothing here: the page is at /, and beside it are /metrics, /api and /healthz"
		http.Error(w, what, http.StatusNotFound)
	}
}

// look returns the picture that r asks for. one is the queue that it names.
func (p *Page) look(r *http.Request) (s *look.Snapshot, one string, err error) {
	s, err = p.looker.Look(r.Context())
	if one = r.URL.Query().Get("queue"); one != "" && s != nil {
		s = s.Of(one)
	}
	return s, one, err
}

// shows reports whether a queue is one of those that the page may show.
func (p *Page) shows(queue string) bool {
	return len(p.queues) == 0 || slices.Contains(p.queues, queue)
}

// ask has f ask the store, a few at a time.
func (p *Page) ask(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := look.Patience(ctx)
	defer cancel()
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.places }()
	err := f(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// status is that of an answer: an error with an older picture is one, too, so that nobody takes that for the present.
func status(gone bool, err error) int {
	switch {
	case err != nil:
		return http.StatusServiceUnavailable
	case gone:
		return http.StatusNotFound
	}
	return http.StatusOK
}

// lacks reports whether a picture has nothing of the queue that was asked for.
func lacks(s *look.Snapshot, one string) bool { return one != "" && (s == nil || len(s.Queues) == 0) }

// An apiAnswer is what /api returns.
type apiAnswer struct {
	Store string `json:"store,omitempty"`
	Error string `json:"error,omitempty"` // why the store could not be asked; what else is told is older then
	*look.Snapshot
}

func (p *Page) serveJSON(w http.ResponseWriter, r *http.Request) {
	s, one, err := p.look(r)
	a := apiAnswer{Store: p.name, Snapshot: s}
	if err != nil {
		a.Error = err.Error()
	}
	b, failed := json.Marshal(a)
	if failed != nil {
		panic(failed) // there is nothing in it that JSON has no words for
	}
	answer(w, status(lacks(s, one), err), "application/json", append(b, '\n'))
}

func (p *Page) serveHealth(w http.ResponseWriter, r *http.Request) {
	if _, _, err := p.look(r); err != nil {
		why := "the store does not answer: " + plain.Line(err.Error()) + "\n"
		answer(w, http.StatusServiceUnavailable, "text/plain; charset=utf-8", []byte(why))
		return
	}
	answer(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
}

func answer(w http.ResponseWriter, status int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body) // whoever has asked may be gone
}

// secure has the browser run and load nothing but what is in the page, and show it
// nowhere else.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin") // with none a form of the page has no origin that could be checked
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}
