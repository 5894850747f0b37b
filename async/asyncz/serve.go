package asyncz

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async/internal/timeline"
	"github.com/ambit-go/ambit/async/picture"
)

// This file answers a request.

var (
	//go:embed page.html
	markup embed.FS
	//go:embed page.css
	ownStyle string
	style    = ownStyle + timeline.Style
	//go:embed page.js
	script string
)

// policy allows the style and the script of the page, by their hashes, and requests to where the page is from.
var policy = "default-src 'none'; style-src " + hashed(style) + "; script-src " + hashed(script) +
	"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var document = template.Must(template.Must(template.New("page.html").Funcs(timeline.Funcs()).Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(style) },
	"script": func() template.JS { return template.JS(script) },
	"player": func() template.JS { return template.JS(timeline.Player) },
	"count":  count,
	"join":   strings.Join,
}).ParseFS(markup, "page.html")).Parse(timeline.Markup()))

func (p *Page) serve(w http.ResponseWriter, r *http.Request) {
	q := parse(r.URL.Query())
	if format := formatOf(r); p.rec != nil && (format == "trace" || format == "recording") {
		p.serveRecorded(w, format)
		return
	}
	if q.Stacks && !p.stacks {
		http.Error(w, "stacks are not shown here: asyncz.NoStacks", http.StatusForbidden)
		return
	}
	pic := p.look(q.Stacks)
	v := viewOf(pic)
	if _, ok := v.top(&q); !ok {
		http.Error(w, "there is no task "+clean(q.Under)+", or it is not among those that are shown each",
			http.StatusNotFound)
		return
	}
	switch format := formatOf(r); format {
	case "html", "saved":
		p.serveHTML(w, v, &q, format == "saved")
	case "text":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = v.below(&q).WriteText(w, max(q.Width, 0)) // whoever has asked may be gone
	case "json":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v.below(&q))
	default:
		http.Error(w, "no such format: html, saved, text and json are", http.StatusNotFound)
	}
}

// formatOf returns the format that r asks for: a document if it names none and comes from a browser, else text, so
// curl needs no parameters.
func formatOf(r *http.Request) string {
	if format := r.URL.Query().Get("format"); format != "" {
		return format
	}
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		return "html"
	}
	return "text"
}

// A page is what the document shows.
type page struct {
	*picture.Tree
	Q        *query
	Saved    bool
	Problems []*problem
	Rows     []*row
	Tiles    []tile
	Places   []place
	Shown    int
	Cut      int
	Past     string
	PastText string
	Links    []pageLink
	Failures []failure // the last one first
	Recorded bool
	Timeline *timeline.Drawing
	Spans    []span
	Minute   []*series
	Data     template.HTML // the recording, of a page that is saved
	Stacks   bool          // may be asked for
	Took     string
}

func (p *Page) serveHTML(w http.ResponseWriter, v *view, q *query, saved bool) {
	room := mostRows
	if saved {
		room, q.OpenAll, q.Saved, q.Raw = mostSaved, true, true, nil
		w.Header().Set("Content-Disposition", `attachment; filename="async-tree.html"`)
	}
	c, rows := v.rows(q, p.known(v.pic), room)
	shown := page{
		Tree: v.pic, Q: q, Saved: saved, Rows: rows, Problems: c.problems(), Tiles: c.tiles(), Places: c.places(),
		Shown: c.shown, Cut: c.cut,
		Links: p.links, Stacks: p.stacks, Took: short(v.pic.Took),
	}
	shown.Past, shown.PastText = drawPast(c.known.past)
	if p.rec != nil {
		p.showRecorded(&shown, c)
	}
	var b bytes.Buffer
	if err := document.Execute(&b, &shown); err != nil {
		panic(err) // the template is ours
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // whoever has asked may be gone
}

// A tile is a figure, and the address of what it counts.
type tile struct{ Name, Value, Link, Class string }

func (c *chooser) tiles() []tile {
	var queued, told int
	for i := range c.pic.Nodes {
		n := &c.pic.Nodes[i]
		if n.State == picture.StateQueued {
			queued++
		}
		if n.Told != nil {
			told++
		}
	}
	for i := range c.pic.Groups {
		g := &c.pic.Groups[i]
		if g.State == picture.StateQueued {
			queued += g.Count
		}
		if g.Told {
			told += g.Count
		}
	}
	of := func(kind picture.ProblemKind) (n int) {
		for i := range c.pic.Problems {
			if c.pic.Problems[i].Kind == kind {
				n++
			}
		}
		return n
	}
	tiles := []tile{
		{"Live", count(c.pic.Live), c.q.With("state", "", "problem", "", "name", "", "under", ""), ""},
		{"Queued", count(queued), c.q.With("state", "queued", "problem", ""), ""},
		{"Told to stop", count(told), c.q.With("state", "told", "problem", ""), ""},
		{"Goroutines", count(c.pic.Goroutines), "", ""},
	}
	add := func(name, problem, class string, n int) {
		if n == 0 {
			class = ""
		}
		tiles = append(tiles, tile{name, count(n), c.q.With("problem", problem, "state", ""), class})
	}
	add("Rings", "ring", "bad", len(c.pic.Rings))
	add("Stragglers", "straggler", "warn", of(picture.ProblemStraggler))
	add("Full limits", "full", "warn", of(picture.ProblemFull))
	add("Restarts", "restarts", "warn", of(picture.ProblemRestarts))
	add("Unclaimed", "unclaimed", "warn", of(picture.ProblemUnclaimed))
	return tiles
}

// A place is a part of another package, such as a worker or a queue.
type place struct {
	Name, State       string
	In                waitCell
	Runs              []waitCell
	Active, Of, Queue string
}

func (c *chooser) places() (all []place) {
	for i := range c.pic.Parts {
		p := &c.pic.Parts[i]
		if i == mostParts {
			break
		}
		one := place{Name: c.part(i + 1), State: clean(p.State), Active: count(p.Active), Queue: count(p.Queued)}
		if p.Places > 0 {
			one.Of = " of " + count(p.Places)
		}
		if id, ok := c.owner[p.Scope]; ok {
			one.In = c.link("", id, "")
		}
		for _, id := range p.Runs {
			one.Runs = append(one.Runs, c.link("", id, ""))
		}
		all = append(all, one)
	}
	return all
}

// mostParts is how many parts are listed.
const mostParts = 100

// drawPast returns the points of a line of how many tasks were live, in a box of 100 by 24, and what it shows in words.
func drawPast(past []sample) (points, text string) {
	if len(past) < 2 {
		return "", ""
	}
	first, last, most, least := past[0].at, past[len(past)-1].at, 1, past[0].live
	for _, s := range past {
		most, least = max(most, s.live), min(least, s.live)
	}
	var b strings.Builder
	for _, s := range past {
		x := 100 * float64(s.at.Sub(first)) / float64(max(last.Sub(first), time.Millisecond))
		fmt.Fprintf(&b, "%.1f,%.1f ", x, 23-22*float64(s.live)/float64(most))
	}
	text = fmt.Sprintf("live tasks in the last %s: between %s and %s", short(last.Sub(first)), count(least), count(most))
	return b.String(), text
}

// below returns the picture, or what is under the task that q names.
func (v *view) below(q *query) *picture.Tree {
	top, _ := v.top(q)
	if q.Under == "" {
		return v.pic
	}
	pic := *v.pic
	pic.Root, pic.Started, pic.Nodes, pic.Groups, pic.Parts = top[0].ID.Scope, 0, nil, nil, v.pic.Parts
	pic.Live, pic.Cut.Grouped = 0, 0
	in := map[picture.ID]bool{top[0].ID: true}
	for i := range v.pic.Nodes {
		n := &v.pic.Nodes[i]
		if above, ok := v.owner[n.ID.Scope]; in[n.ID] || ok && in[above] {
			in[n.ID] = true
			pic.Nodes = append(pic.Nodes, *n)
		}
	}
	for _, g := range v.pic.Groups {
		if in[g.Owner] {
			pic.Groups = append(pic.Groups, g)
			pic.Cut.Grouped += g.Count
		}
	}
	pic.Live = len(pic.Nodes) + pic.Cut.Grouped
	pic.Problems, pic.Rings = nil, nil
	for _, r := range v.pic.Rings {
		if slices.ContainsFunc(r.Waits, func(w picture.RingWait) bool { return in[w.By] }) {
			pic.Rings = append(pic.Rings, r)
		}
	}
	for _, p := range v.pic.Problems {
		if in[p.Node] {
			pic.Problems = append(pic.Problems, p)
		}
	}
	return &pic
}

// States, Kinds and Orders are what the form offers; the first of each is the default.

func (*page) States() []string {
	return []string{"", "queued", "running", "joining", "pausing", "waiting", "told"}
}

func (*page) Kinds() []string {
	return []string{"", "ring", "straggler", "full", "restarts", "unclaimed"}
}

func (*page) Orders() []string { return []string{"", "newest", "name", "live"} }
