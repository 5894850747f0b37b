package asyncz

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/ambit-go/ambit/async/picture"
)

// This file is what a request asks for: every view has an address.

// A query is what a document shows. Its fields are exported for the template.
type query struct {
	Under   string // an ID; "": everything
	Name    string // in lower case
	ID      string // that of the one task that is looked for; "": Name says which
	State   string
	Problem string
	Sort    string
	Open    map[string]bool // IDs of tasks that are unfolded
	OpenAll bool
	Alike   bool // alike tasks are shown each for itself
	Stacks  bool
	Still   bool   // the page does not renew itself
	Saved   bool   // the page is to be kept as a file: its links lead to its own rows
	Width   int    // of a text; 0: any
	Span    string // of the time line: all, or a duration; "": the last minute
	Raw     url.Values
}

func parse(values url.Values) query {
	q := query{
		Under: strings.TrimPrefix(values.Get("under"), "#"), Name: strings.ToLower(strings.TrimSpace(values.Get("name"))),
		State: values.Get("state"), Problem: values.Get("problem"), Sort: values.Get("sort"),
		Open: make(map[string]bool), Alike: values.Get("alike") != "", Stacks: values.Get("stacks") != "",
		Still: values.Get("still") != "", Raw: values,
	}
	if id, ok := strings.CutPrefix(q.Name, "#"); ok && isID(id) {
		q.ID = id
	}
	for id := range strings.SplitSeq(values.Get("open"), ",") {
		if id == "all" {
			q.OpenAll = true
		} else if id != "" {
			q.Open[id] = true
		}
	}
	q.Width, _ = strconv.Atoi(values.Get("width"))
	if q.Span = values.Get("span"); q.Span != "10s" && q.Span != "10m" && q.Span != "all" {
		q.Span = ""
	}
	return q
}

// isID reports whether text is written as an ID is.
func isID(text string) bool {
	scope, ordinal, ok := strings.Cut(text, ".")
	_, bad := strconv.ParseUint(scope, 10, 63)
	_, worse := strconv.ParseUint(ordinal, 10, 63)
	return ok && bad == nil && worse == nil
}

// Filters reports whether only some tasks are asked for.
func (q *query) Filters() bool { return q.Name != "" || q.State != "" || q.Problem != "" }

// With returns the address of q with other parameters: names and values, which are left out if they are empty.
func (q *query) With(params ...string) string {
	values := url.Values{}
	for name, v := range q.Raw {
		if len(v) > 0 && v[0] != "" && name != "format" {
			values.Set(name, v[0])
		}
	}
	for i := 0; i+1 < len(params); i += 2 {
		if values.Del(params[i]); params[i+1] != "" {
			values.Set(params[i], params[i+1])
		}
	}
	return "?" + values.Encode()
}

// opening returns the address of q with task id unfolded, too.
func (q *query) opening(id string) string {
	open := q.Raw.Get("open")
	if open != "" {
		open += ","
	}
	return q.With("open", open+id) + "#t" + id
}

// A view is a picture with its tasks by ID and by owner.
type view struct {
	pic    *picture.Tree
	nodes  map[picture.ID]*picture.Node
	in     map[int64][]*picture.Node // by the number of a scope
	groups map[picture.ID][]*picture.Group
	owner  map[int64]picture.ID // by the number of a scope: whose it is
	wrong  map[picture.ID][]string
	held   map[picture.ID]bool // that a ring holds up
}

func viewOf(pic *picture.Tree) *view {
	v := &view{
		pic: pic, nodes: make(map[picture.ID]*picture.Node, len(pic.Nodes)), in: make(map[int64][]*picture.Node),
		groups: make(map[picture.ID][]*picture.Group), owner: make(map[int64]picture.ID),
		wrong: make(map[picture.ID][]string), held: make(map[picture.ID]bool),
	}
	for i := range pic.Nodes {
		n := &pic.Nodes[i]
		v.nodes[n.ID] = n
		v.in[n.ID.Scope] = append(v.in[n.ID.Scope], n)
		if n.Scope != 0 {
			v.owner[n.Scope] = n.ID
		}
	}
	for i := range pic.Groups {
		v.groups[pic.Groups[i].Owner] = append(v.groups[pic.Groups[i].Owner], &pic.Groups[i])
	}
	for i := range pic.Rings {
		for _, w := range pic.Rings[i].Waits {
			v.mark(w.By, string(ringKind))
		}
		for _, id := range pic.Rings[i].HoldsUp {
			v.held[id] = true
		}
	}
	for _, p := range pic.Problems {
		v.mark(p.Node, string(p.Kind))
	}
	return v
}

func (v *view) mark(id picture.ID, problem string) { v.wrong[id] = append(v.wrong[id], problem) }

// top returns what stands at the top of the view of q, and whether there is such a task.
func (v *view) top(q *query) (all []*picture.Node, ok bool) {
	if q.Under == "" {
		return v.in[v.pic.Root], true
	}
	for id, n := range v.nodes {
		if id.String() == q.Under {
			return []*picture.Node{n}, true
		}
	}
	return nil, false
}
