package asyncz

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/ambit-go/ambit/async/picture"
)

// This file says what is written in a row.

// signs are those of problems: a shape, beside which the word stands.
var signs = map[string]string{"ring": "✗", "straggler": "!", "full": "■", "restarts": "↻", "unclaimed": "?"}

func (c *chooser) cells(n *picture.Node) *cells {
	out := &cells{
		Name: clean(n.Name), ID: n.ID.String(), Kind: string(n.Kind), State: string(n.State), Place: clean(n.Place),
		Age: c.known.ages(n.ID).String(), Told: n.Told != nil, Found: c.found[n.ID], Remarks: remarks(n),
	}
	for _, problem := range c.wrong[n.ID] {
		out.Marks = append(out.Marks, markCell{signs[problem], problem})
	}
	if c.held[n.ID] {
		out.Remarks = append(out.Remarks, "held up by a ring")
	}
	for i := range n.Waits {
		if i == mostWaits {
			out.Waits = append(out.Waits, waitCell{Text: fmt.Sprintf("and %d more", len(n.Waits)-i)})
			break
		}
		if w := c.wait(n, &n.Waits[i]); w != (waitCell{}) {
			w.Age = c.waitedFor(n.ID, &n.Waits[i])
			out.Waits = append(out.Waits, w)
		}
	}
	return out
}

const mostWaits = 4

// waitedFor says for how long the page has seen a wait at each look; "" if that is less than a second.
func (c *chooser) waitedFor(id picture.ID, w *picture.Wait) string {
	since := c.known.waits(waitKey{id, w.How, w.Mark})
	if w.Mark == 0 || since.IsZero() || c.pic.At.Sub(since) < time.Second {
		return ""
	}
	return "≥" + short(c.pic.At.Sub(since))
}

// wait says what task n waits for; nothing if the state of n says that.
func (c *chooser) wait(n *picture.Node, w *picture.Wait) (out waitCell) {
	switch w.How {
	case picture.WayAwait:
		if w.Gone {
			out = waitCell{Text: "awaits " + clean(w.Name) + ", which is gone"}
		} else {
			out = c.link("awaits ", w.On, "")
		}
	case picture.WayJoin:
		return waitCell{}
	case picture.WayLimit:
		out = waitCell{Text: "for a slot"}
		if id, ok := c.limitAround(n.ID); ok {
			out = c.link("for a slot of ", id, "")
		}
	case picture.WayExecutor:
		out = waitCell{Text: "for its executor"}
	case picture.WaySleep:
		out = waitCell{Text: "sleeps"}
	case picture.WayPart:
		out = waitCell{Text: c.partWait(n, w)}
	default:
		out = waitCell{Text: string(w.How)}
	}
	if w.Left > 0 {
		out.After += ", gives up in " + short(w.Left)
	}
	return out
}

// partWait says what of another package is waited for.
func (c *chooser) partWait(n *picture.Node, w *picture.Wait) string {
	part, text := c.part(w.Part), clean(w.Text)
	switch {
	case n.State == picture.StateQueued:
		return "queued in " + part
	case part != "" && text != "":
		return "for " + text + " of " + part
	default:
		return "for " + part + text
	}
}

// limitAround returns the nearest scope around a task that has brought a Limit.
func (c *chooser) limitAround(id picture.ID) (picture.ID, bool) {
	for {
		above, ok := c.owner[id.Scope]
		if !ok {
			return picture.ID{}, false
		}
		if c.nodes[above].Limit != nil {
			return above, true
		}
		id = above
	}
}

// link is a text with a link to a task.
func (c *chooser) link(text string, on picture.ID, after string) waitCell {
	return waitCell{Text: text, On: c.called(on), Link: c.q.to(on), After: after}
}

// called returns the ID and name of a task.
func (v *view) called(id picture.ID) string {
	if n := v.nodes[id]; n != nil {
		return "#" + id.String() + " " + clean(n.Name)
	}
	return "#" + id.String()
}

func (v *view) part(i int) string {
	if i < 1 || i > len(v.pic.Parts) {
		return ""
	}
	return strings.TrimSpace(clean(v.pic.Parts[i-1].Kind) + " " + clean(v.pic.Parts[i-1].Name))
}

// to returns the address of a task: its row, which is shown whatever was filtered and folded.
func (q *query) to(id picture.ID) string {
	row := "#t" + id.String()
	if q.Saved {
		return row
	}
	return q.With("under", "", "problem", "", "state", "", "name", "#"+id.String()) + row
}

// remarks say what there is to say of a task besides.
func remarks(n *picture.Node) (all []string) {
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	if n.Told != nil {
		all = append(all, "told to stop: "+told(n.Told))
	}
	add(n.Live > 0, "%s live of %s", count(n.Live), count(int(n.Started)))
	if l := n.Limit; l != nil {
		add(true, "limit: %d of %d held", l.Held, l.Slots)
		add(l.Queued > 0, "%s queued", count(l.Queued))
	}
	add(n.Restart != nil, "%s", restarted(n.Restart))
	add(n.Daemon, "daemon")
	add(n.Unclaimed > 0, "%d unclaimed", n.Unclaimed)
	add(n.Waiters > 0, "%s", waiters(n.Waiters))
	add(n.Kind == picture.KindFuture && !n.Sought && n.State != picture.StateDone, "nobody waits")
	return all
}

func waiters(n int) string {
	if n == 1 {
		return "1 waits for it"
	}
	return count(n) + " wait for it"
}

func told(t *picture.Told) string {
	if t.Cause != "" {
		return clean(t.Type) + ": " + clean(t.Cause)
	}
	return clean(t.Type)
}

func restarted(r *picture.Restart) string {
	if r == nil {
		return ""
	}
	text := fmt.Sprintf("%d failures, the last %s", r.Failures, clean(r.Last))
	if r.Failures == 1 {
		text = "1 failure, " + clean(r.Last)
	}
	if r.Text != "" {
		text += ": " + clean(r.Text)
	}
	return text
}

// String says what is known: exactly nothing is a question mark.
func (a age) String() string {
	switch {
	case a.AtLeast == 0 && a.AtMost == 0:
		return "?"
	case a.AtLeast == 0:
		return "<" + short(a.AtMost)
	case a.AtMost > 0 && short(a.AtLeast) == short(a.AtMost):
		return short(a.AtLeast)
	default:
		return "≥" + short(a.AtLeast)
	}
}

// short writes a duration with the digits that a person needs.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// count writes a number with commas between thousands.
func count(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// clean returns text as one line of printed characters, of at most 120.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "�"))
	if all := []rune(text); len(all) > 120 {
		text = string(all[:119]) + "…"
	}
	return strings.TrimSpace(text)
}
