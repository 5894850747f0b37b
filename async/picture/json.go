package picture

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// This file is the JSON of a picture. It is flat: an owner is named by its number, for nested output
// of a deep tree cannot be decoded. Numbers are numbers, durations are milliseconds in fields that
// end with _ms, and what is not known is left out.

// Schema says what the JSON of a [Tree] means: a meaning that changes gets another number, new
// fields do not.
const Schema = "ambit-tree/1"

// MarshalJSON returns the picture in the form of [Schema].
func (t *Tree) MarshalJSON() ([]byte, error) {
	out := jsonTree{
		Schema: Schema, At: t.At, Took: t.Took.Microseconds(), Root: t.Root, Started: t.Started, Live: t.Live,
		Process: jsonProcess{t.Process, t.PID, t.Goroutines},
		Cut:     jsonCut{t.Cut.Grouped, t.Cut.Unreached, t.Cut.TimeUp, t.Cut.Problems},
		Nodes:   make([]jsonNode, 0, len(t.Nodes)),
	}
	for i := range t.Problems {
		p := &t.Problems[i]
		out.Problems = append(out.Problems, jsonProblem{string(p.Kind), p.Node, p.Text})
	}
	for i := range t.Rings {
		out.Rings = append(out.Rings, jsonOfRing(&t.Rings[i]))
	}
	for i := range t.Nodes {
		out.Nodes = append(out.Nodes, jsonOfNode(&t.Nodes[i]))
	}
	for i := range t.Parts {
		p := &t.Parts[i]
		out.Parts = append(out.Parts,
			jsonPart{i + 1, p.Scope, p.Kind, p.Name, p.Places, p.Active, p.Queued, p.Runs, p.State})
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		out.Groups = append(out.Groups,
			jsonGroup{g.Owner, g.Name, string(g.Kind), string(g.State), g.Told, g.Count})
	}
	return json.Marshal(&out)
}

// MarshalText writes an ID as it is printed.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads an ID as it is printed.
func (id *ID) UnmarshalText(text []byte) error {
	scope, ordinal, ok := strings.Cut(string(text), ".")
	s, bad := strconv.ParseInt(scope, 10, 64)
	n, worse := strconv.ParseInt(ordinal, 10, 64)
	if !ok || bad != nil || worse != nil {
		return fmt.Errorf("picture: %q is no ID", text)
	}
	*id = ID{s, n}
	return nil
}

// IsZero reports whether id is no task's.
func (id ID) IsZero() bool { return id == ID{} }

func jsonOfRing(r *Ring) jsonRing {
	out := jsonRing{Size: r.Size, Breaks: millis(r.Breaks), HoldsUp: r.HoldsUp, MoreUp: r.MoreUp}
	for _, w := range r.Waits {
		out.Waits = append(out.Waits, jsonRingWait{w.By, string(w.How), w.On, w.Part})
	}
	return out
}

func jsonOfNode(n *Node) jsonNode {
	out := jsonNode{
		ID: n.ID, Owner: n.ID.Scope, Scope: n.Scope,
		Kind: string(n.Kind), Name: n.Name, Place: n.Place, State: string(n.State),
		Begun: n.Begun, Waiters: n.Waiters, Sought: n.Sought, Daemon: n.Daemon,
		Live: n.Live, Started: n.Started, Unclaimed: n.Unclaimed,
	}
	if n.Told != nil {
		out.Told = &jsonTold{n.Told.Type, n.Told.Cause}
	}
	if l := n.Limit; l != nil {
		out.Limit = &jsonLimit{l.Slots, l.Held, l.Queued, l.Holders}
	}
	if r := n.Restart; r != nil {
		out.Restart = &jsonRestart{r.Failures, r.Last, r.Text}
	}
	for i := range n.Waits {
		w := &n.Waits[i]
		out.Waits = append(out.Waits,
			jsonWait{string(w.How), w.On, w.Gone, w.Name, w.Part, w.Text, millis(w.Left), mark(w.Mark), w.Own})
	}
	return out
}

// millis is a duration in milliseconds, with microseconds as decimals; 0 is left out.
type millis time.Duration

// MarshalJSON writes a number.
func (d millis) MarshalJSON() ([]byte, error) {
	ms := float64(time.Duration(d).Round(time.Microsecond)) / float64(time.Millisecond)
	return strconv.AppendFloat(nil, ms, 'f', -1, 64), nil
}

// mark is a number without a meaning, in letters: it has more digits than a number of JSON can have.
type mark uint64

// MarshalText writes hexadecimal digits.
func (m mark) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(m), 16), nil }

type jsonTree struct {
	Schema   string        `json:"schema"`
	At       time.Time     `json:"at"`
	Took     int64         `json:"took_us"`
	Process  jsonProcess   `json:"process"`
	Root     int64         `json:"root"`
	Started  int64         `json:"started,omitempty"`
	Live     int           `json:"live"`
	Cut      jsonCut       `json:"cut"`
	Problems []jsonProblem `json:"problems,omitempty"`
	Rings    []jsonRing    `json:"rings,omitempty"`
	Nodes    []jsonNode    `json:"nodes"`
	Parts    []jsonPart    `json:"parts,omitempty"`
	Groups   []jsonGroup   `json:"groups,omitempty"`
}

type jsonProcess struct {
	Name       string `json:"name"`
	PID        int    `json:"pid"`
	Goroutines int    `json:"goroutines"`
}

type jsonCut struct {
	Grouped   int  `json:"grouped"`
	Unreached int  `json:"unreached"`
	TimeUp    bool `json:"time_up,omitempty"`
	Problems  int  `json:"problems,omitempty"`
}

type jsonProblem struct {
	Kind string `json:"kind"`
	Node ID     `json:"node"`
	Text string `json:"text,omitempty"`
}

type jsonRing struct {
	Size    int            `json:"size"`
	Waits   []jsonRingWait `json:"waits"`
	Breaks  millis         `json:"breaks_ms,omitempty"`
	HoldsUp []ID           `json:"holds_up,omitempty"`
	MoreUp  int            `json:"more_up,omitempty"`
}

type jsonRingWait struct {
	By   ID     `json:"by"`
	How  string `json:"how"`
	On   ID     `json:"on"`
	Part int    `json:"part,omitempty"`
}

type jsonNode struct {
	ID        ID           `json:"id"`
	Owner     int64        `json:"owner"`
	Scope     int64        `json:"scope,omitempty"`
	Kind      string       `json:"kind"`
	Name      string       `json:"name"`
	Place     string       `json:"place,omitempty"`
	State     string       `json:"state"`
	Begun     time.Time    `json:"begun,omitzero"`
	Told      *jsonTold    `json:"told,omitempty"`
	Waits     []jsonWait   `json:"waits,omitempty"`
	Waiters   int          `json:"waiters,omitempty"`
	Sought    bool         `json:"sought,omitempty"`
	Limit     *jsonLimit   `json:"limit,omitempty"`
	Restart   *jsonRestart `json:"restart,omitempty"`
	Daemon    bool         `json:"daemon,omitempty"`
	Live      int          `json:"live,omitempty"`
	Started   int64        `json:"started,omitempty"`
	Unclaimed int          `json:"unclaimed,omitempty"`
}

type jsonTold struct {
	Type  string `json:"type"`
	Cause string `json:"cause,omitempty"`
}

type jsonWait struct {
	How  string `json:"how"`
	On   ID     `json:"on,omitzero"`
	Gone bool   `json:"gone,omitempty"`
	Name string `json:"name,omitempty"`
	Part int    `json:"part,omitempty"`
	Text string `json:"text,omitempty"`
	Left millis `json:"left_ms,omitempty"`
	Mark mark   `json:"mark,omitzero"`
	Own  bool   `json:"own,omitempty"`
}

type jsonLimit struct {
	Slots   int  `json:"slots"`
	Held    int  `json:"held"`
	Queued  int  `json:"queued"`
	Holders []ID `json:"holders,omitempty"`
}

type jsonRestart struct {
	Failures int    `json:"failures"`
	Last     string `json:"last"`
	Text     string `json:"text,omitempty"`
}

type jsonPart struct {
	Part   int    `json:"part"`
	Scope  int64  `json:"scope"`
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"`
	Places int    `json:"places,omitempty"`
	Active int    `json:"active"`
	Queued int    `json:"queued"`
	Runs   []ID   `json:"runs,omitempty"`
	State  string `json:"state,omitempty"`
}

type jsonGroup struct {
	Owner ID     `json:"owner"`
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	State string `json:"state"`
	Told  bool   `json:"told,omitempty"`
	Count int    `json:"count"`
}
