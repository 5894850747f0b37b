package picture

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
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

// Alike returns name with each run of digits as one #, so that the names of a series are equal.
func Alike(name string) string {
	if strings.IndexFunc(name, isDigit) < 0 {
		return name
	}
	var b strings.Builder
	digits := false
	for _, r := range name {
		if isDigit(r) {
			if !digits {
				b.WriteByte('#')
			}
			digits = true
			continue
		}
		digits = false
		b.WriteRune(r)
	}
	return b.String()
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// maxName is how many characters of a name or text are printed.
const maxName = 120

// clean returns text as one line of printed characters, not too long.
func clean(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return cut(text, maxName)
	}
	text = strings.ToValidUTF8(text, "�")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	return cut(strings.TrimSpace(text), maxName)
}

// cut returns the first n characters of text; 0: all.
func cut(text string, n int) string {
	if n <= 0 || utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

func tasks(n int) string { return count(n) + " " + plural("task", n) }

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// count writes a number with commas between thousands.
func count(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
