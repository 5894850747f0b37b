package picture

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// This file is the text of a picture: problems first, then the tree.

// MaxLines is how many lines [Tree.WriteText] writes at most.
const MaxLines = 400

// WriteText writes the picture for people: problems first, the worst before the others, then the
// tree. It writes at most [MaxLines] lines, of at most width characters if width is not 0, and says
// what it left out. Alike tasks of one owner are one line. Names are cut, and cleaned of what is not printed.
func (t *Tree) WriteText(w io.Writer, width int) error {
	out := writer{t: t, width: width, nodes: make(map[ID]*Node, len(t.Nodes)), in: make(map[int64][]*Node)}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		out.nodes[n.ID] = n
		out.in[n.ID.Scope] = append(out.in[n.ID.Scope], n)
	}
	out.inRing = make(map[ID]bool)
	for _, r := range t.Rings {
		for _, w := range r.Waits {
			out.inRing[w.By] = true
		}
	}
	return out.write(w)
}

type writer struct {
	t      *Tree
	width  int
	nodes  map[ID]*Node
	in     map[int64][]*Node // by the number of a scope: what is in it
	inRing map[ID]bool
	lines  []string
	more   int // lines that were left out
}

func (w *writer) write(to io.Writer) error {
	w.head()
	for i := range w.t.Rings {
		w.ring(&w.t.Rings[i])
	}
	for i := range w.t.Problems {
		w.problem(&w.t.Problems[i])
	}
	if w.t.Cut.Problems > 0 {
		w.line("and %s more problems", count(w.t.Cut.Problems))
	}
	if len(w.lines) > 1 {
		w.line("")
	}
	w.rows()
	b := bufio.NewWriter(to)
	for _, line := range w.lines {
		b.WriteString(cut(strings.TrimRight(line, " "), w.width))
		b.WriteByte('\n')
	}
	if w.more > 0 {
		fmt.Fprintf(b, "and %s more lines\n", count(w.more))
	}
	return b.Flush()
}

// line adds a line, if there is room, less one for what is said at the end.
func (w *writer) line(format string, args ...any) {
	if len(w.lines) >= MaxLines-1 {
		w.more++
		return
	}
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

func (w *writer) head() {
	t := w.t
	at := t.At.UTC().Format("15:04:05.000Z")
	text := fmt.Sprintf("async tree of %s (%d) at %s: %s", clean(t.Process), t.PID, at, tasks(t.Live))
	if n := len(t.Parts); n > 0 {
		text += fmt.Sprintf(", %d %s", n, plural("part", n))
	}
	text += fmt.Sprintf(", %s %s; looked for %s", count(t.Goroutines), plural("goroutine", t.Goroutines), short(t.Took))
	if t.Cut.Unreached > 0 {
		text += fmt.Sprintf("; at least %s were not looked at", tasks(t.Cut.Unreached))
	}
	if t.Cut.TimeUp {
		text += "; the look was given up, for it took too long"
	}
	w.line("%s", text)
}

// called returns the ID and name of a task.
func (w *writer) called(id ID) string {
	if n := w.nodes[id]; n != nil {
		return "#" + id.String() + " " + clean(n.Name)
	}
	return "#" + id.String()
}

func (w *writer) part(i int) string {
	if i < 1 || i > len(w.t.Parts) {
		return ""
	}
	p := &w.t.Parts[i-1]
	return strings.TrimSpace(clean(p.Kind) + " " + clean(p.Name))
}

func (w *writer) ring(r *Ring) {
	breaks := "none has a limit that is known"
	if r.Breaks > 0 {
		breaks = "a limit ends one of them in " + short(r.Breaks)
	}
	size := ""
	if r.Size > len(r.Waits) {
		size = fmt.Sprintf(" among %d tasks", r.Size)
	}
	w.line("RING of %d %s%s; %s", len(r.Waits), plural("wait", len(r.Waits)), size, breaks)
	for _, wait := range r.Waits {
		w.line("    %s  %s", w.called(wait.By), w.stepText(&wait))
	}
	if len(r.HoldsUp) > 0 {
		var names []string
		for _, id := range r.HoldsUp {
			names = append(names, w.called(id))
		}
		if r.MoreUp > 0 {
			names = append(names, fmt.Sprintf("%s more", count(r.MoreUp)))
		}
		w.line("    holds up %s", strings.Join(names, ", "))
	}
}

func (w *writer) stepText(s *RingWait) string {
	on := w.called(s.On)
	switch s.How {
	case WayAwait:
		return "awaits " + on
	case WayJoin:
		return "joins " + on
	case WayLimit:
		return "queues for a slot that " + on + " holds"
	case WayPart:
		return "waits in " + w.part(s.Part) + ", which runs " + on
	case WayChoice:
		return "needs its contender " + on
	default:
		return string(s.How) + " " + on
	}
}

func (w *writer) problem(p *Problem) {
	n, called := w.nodes[p.Node], w.called(p.Node)
	switch {
	case n == nil:
		w.line("%s %s", strings.ToUpper(string(p.Kind)), called)
	case p.Kind == ProblemStraggler:
		w.line("STRAGGLER %s: told to stop by %s; %s", called, told(n.Told), w.does(n))
	case p.Kind == ProblemFull:
		w.line("FULL limit %d of %s: %s", n.Limit.Slots, called, w.limit(n.Limit))
	case p.Kind == ProblemRestarts:
		w.line("RESTARTS %s: %s", called, restart(n.Restart))
	case p.Kind == ProblemUnclaimed:
		w.line("UNCLAIMED in %s: %d %s of futures that nobody has asked for",
			called, n.Unclaimed, plural("failure", n.Unclaimed))
	}
	for line := range strings.Lines(p.Text) {
		w.line("    %s", strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "  "))
	}
}

func (w *writer) limit(l *Limit) string {
	text := fmt.Sprintf("%s queued", count(l.Queued))
	var names []string
	for _, id := range l.Holders {
		names = append(names, w.called(id))
	}
	if more := l.Held - len(l.Holders); more > 0 {
		names = append(names, fmt.Sprintf("%s more", count(more)))
	}
	if len(names) > 0 {
		text += ", held by " + strings.Join(names, ", ")
	}
	return text
}

func told(t *Told) string {
	if t == nil {
		return "its scope"
	}
	if t.Cause != "" {
		return t.Type + ": " + clean(t.Cause)
	}
	return t.Type
}

func restart(r *Restart) string {
	if r == nil {
		return "failed"
	}
	text := fmt.Sprintf("%d %s, the last %s", r.Failures, plural("failure", r.Failures), r.Last)
	if r.Text != "" {
		text += ": " + clean(r.Text)
	}
	return text
}
