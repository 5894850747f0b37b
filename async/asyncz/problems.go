package asyncz

import (
	"fmt"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async/picture"
)

// This file draws what is wrong, in words.

// A problem is one entry of the list of problems.
type problem struct {
	Key, Value string
	Sign, Kind string
	Steps      []waitCell // of a ring: one way round
	Text       waitCell   // else: which task, and what it does
	More       []string
	Links      []waitCell // of a ring: whom it holds up; of a limit: who holds it
	LinksText  string
	Stack      string
	Seen       string // for how long it was seen
	Show       string // the address of the tree around it
}

// problems returns those of the picture, the worst first.
func (c *chooser) problems() (all []*problem) {
	for i := range c.pic.Rings {
		all = append(all, c.ring(&c.pic.Rings[i]))
	}
	for i := range c.pic.Problems {
		all = append(all, c.problem(&c.pic.Problems[i]))
	}
	for _, p := range all {
		p.Value = fmt.Sprintf("%x", hashOf(fmt.Sprintf("%+v", *p)))
	}
	return all
}

func (c *chooser) ring(r *picture.Ring) *problem {
	key := keyOfRing(r)
	p := &problem{Key: "ring" + key.node.String(), Sign: signs["ring"], Kind: "ring", Seen: c.seen(key)}
	p.Show = c.q.With("problem", "ring", "name", "", "state", "", "under", "")
	for _, w := range r.Waits {
		p.Steps = append(p.Steps, c.link("", w.By, " "+c.step(&w)))
	}
	breaks := "no limit that is known ends it"
	if r.Breaks > 0 {
		breaks = "a limit ends one of the waits in " + short(r.Breaks)
	}
	p.More = append(p.More, breaks)
	if r.Size > len(r.Waits) {
		p.More = append(p.More, fmt.Sprintf("%d tasks are in it", r.Size))
	}
	p.LinksText = "holds up"
	for _, id := range r.HoldsUp {
		p.Links = append(p.Links, c.link("", id, ""))
	}
	if r.MoreUp > 0 {
		p.Links = append(p.Links, waitCell{Text: count(r.MoreUp) + " more"})
	}
	return p
}

// step says how a task of a ring waits for the next one.
func (c *chooser) step(w *picture.RingWait) string {
	switch w.How {
	case picture.WayAwait:
		return "awaits"
	case picture.WayJoin:
		return "joins"
	case picture.WayLimit:
		return "queues for a slot that is held by"
	case picture.WayPart:
		return "waits in " + c.part(w.Part) + ", which runs"
	case picture.WayChoice:
		return "needs its contender"
	default:
		return "waits for"
	}
}

func (c *chooser) problem(in *picture.Problem) *problem {
	kind := string(in.Kind)
	p := &problem{
		Key: kind + in.Node.String(), Sign: signs[kind], Kind: kind, Stack: in.Text,
		Seen: c.seen(problemKey{in.Kind, in.Node}), Text: c.link("", in.Node, ""),
		Show: c.q.With("problem", kind, "name", "", "state", "", "under", ""),
	}
	n := c.nodes[in.Node]
	if n == nil {
		return p
	}
	switch {
	case in.Kind == picture.ProblemStraggler && n.Told != nil:
		p.Text.After = " was told to stop: " + told(n.Told)
		p.More = append(p.More, "and is still "+string(n.State))
	case in.Kind == picture.ProblemFull && n.Limit != nil:
		c.full(p, n.Limit)
	case in.Kind == picture.ProblemRestarts:
		p.Text.After = " is started again: " + restarted(n.Restart)
	case in.Kind == picture.ProblemUnclaimed:
		p.Text.After = fmt.Sprintf(" has futures that have failed: %d, which nobody has asked for", n.Unclaimed)
	}
	return p
}

// full tells of a limit all of whose slots are held.
func (c *chooser) full(p *problem, l *picture.Limit) {
	p.Text.Text, p.Text.After = fmt.Sprintf("limit %d of ", l.Slots), ": "+count(l.Queued)+" queued"
	p.LinksText = "held by"
	for _, id := range l.Holders {
		after := ""
		if h := c.nodes[id]; h != nil {
			after = " (" + c.does(h) + ")"
		}
		p.Links = append(p.Links, c.link("", id, after))
	}
	if more := l.Held - len(l.Holders); more > 0 {
		p.Links = append(p.Links, waitCell{Text: count(more) + " more"})
	}
}

// does says in a few words what a task does.
func (c *chooser) does(n *picture.Node) string {
	for i := range n.Waits {
		if w := c.wait(n, &n.Waits[i]); w != (waitCell{}) {
			return strings.TrimSpace(w.Text + w.On + w.After)
		}
	}
	if known := c.known.ages(n.ID); known != (age{}) {
		return string(n.State) + ", " + known.String() + " old"
	}
	return string(n.State)
}

// seen says for how long the page has seen a problem at each look.
func (c *chooser) seen(key problemKey) string {
	since := c.known.since(key)
	if since.IsZero() || c.pic.At.Sub(since) < time.Second {
		return ""
	}
	return "seen for " + short(c.pic.At.Sub(since))
}
