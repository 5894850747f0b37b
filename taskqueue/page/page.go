// Package page shows a store in a browser, and to Prometheus. It only reads.
//
//	p := page.New(store)
//	http.Handle("/tasks/", http.StripPrefix("/tasks", p))
//
// A Page answers GET and HEAD of
//
//	/          the page: queues, what runs, what fails, dead letters, periodic jobs;
//	           ?queue=name shows one queue
//	/metrics   the figures in the text format of Prometheus
//	/api       all that the page shows, as JSON; ?queue=name here, too
//	/healthz   200 if the store answers, 503 if it does not
//
// The page is one document without anything from elsewhere. It works without
// JavaScript, and renews itself with it.
//
// # What it costs
//
// The store is asked at most once a second, and never while an earlier question is
// open, however many look. One look is at most 100 queues, and in each of them 20 tasks
// of a list.
//
// # Who may see it
//
// Whoever reaches the handler sees the ids, errors and the beginnings of payloads of all
// queues: there is no password. Put the handler behind one, or listen on 127.0.0.1, as
// taskq serve does. Text that tasks bring along is escaped, and a Content-Security-Policy
// keeps the browser from running or loading anything else.
package page

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

// A Page is a handler that shows a store. It may serve any number of requests at a
// time, and needs no closing.
type Page struct {
	looker *look.Looker
	name   string
	queues []string
}

// An Option changes a Page.
type Option func(*Page)

// Queues says which queues are shown. Defaults to all, and of those to the first 100 by
// name.
func Queues(names ...string) Option {
	return func(p *Page) { p.queues = append([]string(nil), names...) }
}

// Name is what the page calls the store. It is shown to everybody: leave passwords out.
func Name(name string) Option { return func(p *Page) { p.name = name } }

// New returns the page of a store, which stays the caller's to close.
func New(store taskqueue.Store, opts ...Option) *Page {
	if store == nil {
		panic("page: New with a nil store: pass what sqlstore.OpenFile or redisstore.New return")
	}
	p := new(Page)
	for _, opt := range opts {
		opt(p)
	}
	p.looker = look.New(store, p.queues...)
	return p
}

// Run notes the counters of the queues every five seconds until ctx is done, so that
// there are rates, and ten minutes of history, when somebody comes to look. Without it
// a page has the rates of the time in which it was looked at. It returns nil.
func (p *Page) Run(ctx context.Context) error {
	for {
		_ = p.looker.Sample(ctx) // those who look are told of an error
		if async.Sleep(ctx, look.Step) != nil {
			return nil
		}
	}
}

// ServeHTTP is a method of [http.Handler].
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page only shows: use the command taskq to change anything", http.StatusMethodNotAllowed)
		return
	}
	switch strings.TrimPrefix(r.URL.Path, "/") {
	case "":
		p.servePage(w, r)
	case "metrics":
		p.serveMetrics(w, r)
	case "api":
		p.serveJSON(w, r)
	case "healthz":
		p.serveHealth(w, r)
	default:
		http.Error(w, "there is nothing here: the page is at /, and beside it are /metrics, /api and /healthz", http.StatusNotFound)
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

func (p *Page) servePage(w http.ResponseWriter, r *http.Request) {
	s, one, err := p.look(r)
	v := newView(s, err, time.Now())
	v.Store, v.One, v.Still = p.name, one, r.URL.Query().Has("still")
	var b bytes.Buffer
	if err := document.Execute(&b, v); err != nil {
		panic(err) // the template does not fit its data
	}
	answer(w, status(s, one, err), "text/html; charset=utf-8", b.Bytes())
}

// status is that of an answer with all that there is to say: an error with an older
// picture is one, too, so that nobody takes that for the present.
func status(s *look.Snapshot, one string, err error) int {
	switch {
	case err != nil:
		return http.StatusServiceUnavailable
	case one != "" && len(s.Queues) == 0:
		return http.StatusNotFound
	}
	return http.StatusOK
}

func (p *Page) serveMetrics(w http.ResponseWriter, r *http.Request) {
	s, _, err := p.look(r)
	answer(w, http.StatusOK, "text/plain; version=0.0.4; charset=utf-8", metrics(s, err))
}

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
	answer(w, status(s, one, err), "application/json", append(b, '\n'))
}

func (p *Page) serveHealth(w http.ResponseWriter, r *http.Request) {
	if _, _, err := p.look(r); err != nil {
		answer(w, http.StatusServiceUnavailable, "text/plain; charset=utf-8", []byte("the store does not answer: "+plain.Line(err.Error())+"\n"))
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
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}
