package picture

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// This file is the tree in the text of a picture, a row for each task.

// maxDepth is how deep the tree is drawn; deeper tasks stand at that depth, with their number.
const maxDepth = 30

// rows draws the tree.
func (w *writer) rows() {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	room := MaxLines - 1 - len(w.lines)
	w.walk(func(cells ...string) {
		if room--; room < 0 {
			w.more++
			return
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	})
	table.Flush()
	for line := range strings.Lines(b.String()) {
		w.lines = append(w.lines, strings.TrimSuffix(line, "\n"))
	}
}

// An at is a list of siblings that is being drawn, as far as next.
type at struct {
	lines  string // what stands before each of them
	all    []*Node
	counts map[*Node]int // of the first of several that are alike
	next   int
}

// walk draws what stands at the top, and below it. It does not call itself: a tree may be deep.
func (w *writer) walk(row func(cells ...string)) {
	stack := []at{w.siblings(w.t.Root, "")}
	w.partRows(w.t.Root, "", row)
	for len(stack) > 0 {
		a := &stack[len(stack)-1]
		if a.next == len(a.all) {
			stack = stack[:len(stack)-1]
			continue
		}
		n := a.all[a.next]
		a.next++
		depth := len(stack) - 1
		branch, below := "", ""
		if depth > 0 {
			branch, below = "├ ", "│ "
			if a.next == len(a.all) {
				branch, below = "└ ", "  "
			}
		}
		before := a.lines
		w.row(row, before+branch, n, a.counts[n])
		if n.Scope == 0 {
			continue
		}
		if depth < maxDepth {
			before += below
		}
		w.partRows(n.Scope, before, row)
		if s := w.siblings(n.Scope, before); len(s.all) > 0 {
			stack = append(stack, s)
		}
		w.groupRows(n.ID, before, row)
	}
	w.groupRows(ID{}, "", row)
}

// siblings returns what is in a scope; of those that are alike, and have nothing in them, one.
func (w *writer) siblings(scope int64, lines string) at {
	a := at{lines: lines, counts: make(map[*Node]int)}
	first := make(map[string]*Node)
	for _, n := range w.in[scope] {
		if len(w.in[n.Scope]) > 0 && n.Scope != 0 || w.inRing[n.ID] {
			a.all = append(a.all, n)
			continue
		}
		key := Alike(n.Name) + "\x00" + string(n.Kind) + "\x00" + Alike(w.does(n)) + "\x00" + told(n.Told)
		if of := first[key]; of != nil {
			a.counts[of]++
			continue
		}
		first[key] = n
		a.counts[n] = 1
		a.all = append(a.all, n)
	}
	return a
}

func (w *writer) row(row func(cells ...string), before string, n *Node, alike int) {
	name := w.called(n.ID)
	if alike > 1 {
		name = fmt.Sprintf("×%s %s, the oldest #%s", count(alike), clean(Alike(n.Name)), n.ID)
	}
	row(before+name, string(n.Kind), w.does(n), strings.Join(w.remarks(n), ", "), clean(n.Place))
}

// does returns what n does, or what it waits for.
func (w *writer) does(n *Node) string {
	if len(n.Waits) == 0 {
		return string(n.State)
	}
	text := w.waits(n, &n.Waits[0])
	if more := len(n.Waits) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (w *writer) waits(n *Node, wait *Wait) string {
	text := ""
	switch wait.How {
	case WayAwait:
		text = "awaits #" + wait.On.String() + " " + clean(wait.Name)
		if wait.Gone {
			text = "awaits " + clean(wait.Name) + ", which is gone"
		}
	case WayJoin:
		text = string(StateJoining)
	case WayLimit:
		text = "queued for a slot"
	case WayExecutor:
		text = "queued for its executor"
	case WaySleep:
		if text = "sleeps"; n.State == StatePausing {
			text = string(StatePausing)
		}
	case WayPart:
		if part := w.part(wait.Part); part != "" {
			text = part
		}
		if wait.Text != "" {
			text = strings.TrimSpace(strings.TrimSuffix(text, ",") + ": " + clean(wait.Text))
			text = strings.TrimPrefix(text, ": ")
		}
		if text = "waits for " + text; n.State == StateQueued {
			text = "queued in " + w.part(wait.Part)
		}
	default:
		text = "waits (" + string(wait.How) + ")"
	}
	if wait.Left > 0 {
		text += ", " + short(wait.Left) + " left"
	}
	return text
}

func (w *writer) remarks(n *Node) (all []string) {
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(w.inRing[n.ID], "RING")
	if n.Told != nil {
		all = append(all, "told to stop: "+n.Told.Type)
	}
	add(n.Live > 0 || n.Scope != 0 && n.Started > 0, "%s live of %s", count(n.Live), count(int(n.Started)))
	if l := n.Limit; l != nil {
		add(true, "limit %d/%d", l.Held, l.Slots)
		add(l.Queued > 0, "%s queued", count(l.Queued))
	}
	if r := n.Restart; r != nil {
		add(true, "%s", restart(r))
	}
	add(n.Daemon, "daemon")
	add(n.Unclaimed > 0, "%d unclaimed", n.Unclaimed)
	add(n.Kind == KindFuture && !n.Sought && n.State != StateDone, "nobody waits")
	return all
}

func (w *writer) partRows(scope int64, before string, row func(cells ...string)) {
	for i := range w.t.Parts {
		p := &w.t.Parts[i]
		if p.Scope != scope {
			continue
		}
		does := "idle"
		if len(p.Runs) > 0 {
			does = "runs " + w.called(p.Runs[0])
		} else if p.Active > 0 {
			does = fmt.Sprintf("%d running", p.Active)
		}
		remark := ""
		if p.Queued > 0 {
			remark = count(p.Queued) + " queued"
		}
		if p.State != "" {
			remark = strings.TrimPrefix(remark+", "+clean(p.State), ", ")
		}
		row(before+"│ "+clean(p.Kind)+" "+clean(p.Name), "part", does, remark, "")
	}
}

func (w *writer) groupRows(owner ID, before string, row func(cells ...string)) {
	for i := range w.t.Groups {
		g := &w.t.Groups[i]
		if g.Owner != owner {
			continue
		}
		remark := "not shown"
		if g.Told {
			remark += ", told to stop"
		}
		row(fmt.Sprintf("%s+ ×%s %s", before, count(g.Count), clean(g.Name)), string(g.Kind), string(g.State), remark, "")
	}
}
