package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

var (
	//go:embed *.html
	markup embed.FS
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

// policy allows the style and the script of the page, by their hashes, and requests to
// where the page is from. Nothing else is loaded or run.
var policy = "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script) +
	"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var document = template.Must(template.New("page").Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(style) },
	"script": func() template.JS { return template.JS(script) },
	"line":   plain.Line,
	"text":   plain.Text,
	"count":  plain.Count[int64],
	"number": plain.Count[int],
	"span":   plain.Span,
	"link":   link,
	"th":     th,
	"td":     td,
	"table":  func(caption string, heads ...template.HTML) heading { return heading{caption, heads} },
	"kind":   kindName,
}).ParseFS(markup, "*.html"))

// link returns a relative URL with parameters: names and values, without those that are empty.
func link(path string, params ...string) string {
	q := url.Values{}
	for i := 0; i < len(params); i += 2 {
		if params[i+1] != "" {
			q.Set(params[i], params[i+1])
		}
	}
	return path + "?" + q.Encode()
}

// A heading is what a table begins with. Roles are said, since a table that is shown as cards is none for a browser.
type heading struct {
	Caption string
	Heads   []template.HTML
}

// th is the head of a column. class is n for numbers, and title explains the label.
func th(label string, more ...string) template.HTML {
	class, title := append(more, "", "")[0], append(more, "", "")[1]
	open := tag("th", `role="columnheader" scope="col"`, "class", class, "title", title)
	return open + template.HTML(template.HTMLEscapeString(label)+"</th>")
}

// td begins a cell of a column.
func td(label string, class ...string) template.HTML {
	return tag("td", `role="cell"`, "class", strings.Join(class, " "), "data-label", label)
}

func tag(name, attributes string, more ...string) template.HTML {
	text := "<" + name + " " + attributes
	for i := 0; i < len(more); i += 2 {
		if more[i+1] != "" {
			text += " " + more[i] + `="` + template.HTMLEscapeString(more[i+1]) + `"`
		}
	}
	return template.HTML(text + ">")
}

// kindName is what a type is called; the sums of types that have none of their own are called so.
func kindName(kind string) string {
	if kind == "" {
		return "other kinds"
	}
	return plain.Line(kind)
}

// A view is what a document shows. Part names the template of its main part.
type view struct {
	*look.Snapshot
	Part  string
	Title string
	Store string
	Now   time.Time
	One   string // the only queue that is shown
	Still bool   // does not renew itself where there is no JavaScript
	Acts  bool
	Here  string // the URL of this view, to which forms come back
	Did   string // by the form that was sent
	Error string // the store does not answer
	Known bool   // there is a picture
	Total look.Queue
	List  *list
	Task  *task
	Kind  *kindView
}

// show answers with a document.
func (p *Page) show(w http.ResponseWriter, status int, v *view) {
	v.Store, v.Acts, v.Now = p.name, p.acts, time.Now()
	var b bytes.Buffer
	if err := document.ExecuteTemplate(&b, "page.html", v); err != nil {
		panic(err) // the template does not fit its data
	}
	answer(w, status, "text/html; charset=utf-8", b.Bytes())
}

// newView is the view of a request.
func newView(r *http.Request, part string, err error) *view {
	q := r.URL.Query()
	v := &view{Part: part, One: q.Get("queue"), Still: q.Has("still"), Did: did(q)}
	for _, name := range []string{"did", "n", "held", "more"} {
		q.Del(name)
	}
	v.Here = strings.TrimPrefix(r.URL.Path, "/") + "?" + q.Encode()
	if err != nil {
		v.Error = plain.Line(err.Error())
	}
	return v
}

func (p *Page) serveOverview(w http.ResponseWriter, r *http.Request) {
	s, one, err := p.look(r)
	v := newView(r, "overview", err)
	v.Title = one
	v.Snapshot, v.Known = s, s != nil
	if s == nil {
		v.Snapshot = new(look.Snapshot)
	}
	v.Total.States = map[taskqueue.State]int64{}
	for _, q := range v.Queues {
		for st, n := range q.States {
			v.Total.States[st] += n
		}
		v.Total.LateSeconds = max(v.Total.LateSeconds, q.LateSeconds)
	}
	p.show(w, status(lacks(s, one), err), v)
}

// In is how many tasks a queue has in a state.
func (v *view) In(q look.Queue, state string) (int64, error) {
	st, err := taskqueue.ParseState(state)
	return q.States[st], err
}

// Ago and Until are how long a time is from now.
func (v *view) Ago(t time.Time) string   { return plain.Span(v.Now.Sub(t).Seconds()) }
func (v *view) Until(t time.Time) string { return plain.Span(t.Sub(v.Now).Seconds()) }

// Over reports whether a time has passed.
func (v *view) Over(t time.Time) bool { return t.Before(v.Now) }

// A stamp is a time with how far it is from now.
type stamp struct {
	At    string // for machines and tooltips
	Words string
}

// When says when a time is or was.
func (v *view) When(t time.Time) stamp {
	s := stamp{At: t.UTC().Format(time.RFC3339), Words: "in " + v.Until(t)}
	if v.Over(t) {
		s.Words = v.Ago(t) + " ago"
	}
	return s
}

// Clock is the time of the picture.
func (v *view) Clock() string { return v.At.UTC().Format("15:04:05") + " UTC" }

// A button is one of a form that does something.
type button struct {
	To    string // the URL of the form
	Do    string
	Label string
	Names string // what it is done to, for those who do not see where the button is
	Sure  bool   // it is asked for once more
}

// Buttons are those for a task, by its state.
func (v *view) Buttons(queue, id string, state taskqueue.State) []button {
	return v.buttons(link("act", "queue", queue, "id", id, "back", v.Here), " "+plain.Line(id), state, "delete")
}

func (v *view) buttons(to, names string, state taskqueue.State, sure ...string) (all []button) {
	for _, do := range order {
		if v.Acts && deeds[do].can(state) {
			all = append(all, button{to, do, deeds[do].label, names, slices.Contains(sure, do)})
		}
	}
	return all
}

// First is the button that stands in a list, of those for a task.
func (v *view) First(queue, id string, state taskqueue.State) []button {
	all := v.Buttons(queue, id, state)
	return all[:min(len(all), 1)]
}

// All are the buttons for all tasks that a filter finds.
func (v *view) All(params string, state taskqueue.State) []button {
	return v.buttons("act?"+params+"&"+url.Values{"back": {v.Here}}.Encode(), " all", state, order...)
}

// Group are those for the dead letters of a group of failures.
func (v *view) Group(f look.Failure) []button {
	if f.Dead == 0 {
		return nil
	}
	to := link("act", "queue", f.Queue, "state", "dead", "type", f.Type, "alike", f.Alike, "back", v.Here)
	all := v.buttons(to, " dead letters of "+plain.Line(f.Type)+" with the error "+plain.Line(f.Alike), taskqueue.StateDead, "delete")
	for i := range all {
		all[i].Label += " all"
	}
	return all
}

// Switch is the button that pauses a queue, or has it go on.
func (v *view) Switch(q look.Queue) []button {
	if !v.Acts {
		return nil
	}
	to := link("act", "queue", q.Name, "back", v.Here)
	if q.Settings.Paused {
		return []button{{to, "resume", "Resume", " queue " + plain.Line(q.Name), false}}
	}
	return []button{{to, "pause", "Pause", " queue " + plain.Line(q.Name), false}}
}
