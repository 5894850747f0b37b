// Package timeline draws what a recorder has as a time line: a row for each task, with bars for how long it queued,
// ran and waited. The pages of packages record and asyncz show it, and their saved pages play it.
package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Drawing is a time line.
type Drawing struct {
	From, To time.Time
	Rows     []*Row
	Ticks    []Tick
	More     int // how many tasks found no row
	Lost     int64
	Spared   int64
}

// A Row is one task.
type Row struct {
	Key, ID, Name, Took string
	Depth               int
	Sign, End, Class    string // how it has ended, or stands
	Bars                []Bar
	Lines               []string // all that is known of it
	Link                string   // to its row in the tree; "": none
	Begun, Ended        int64    // in milliseconds since From; Ended -1: it has not
}

// A Bar is a stretch of time: the box is 1000 wide and 20 high.
type Bar struct {
	X, Width, Y, Height string
	Class               string // queued, runs, waits
}

// A Tick is a mark of the scale.
type Tick struct{ Text string }

// Most is how many rows there are at the most.
const Most = 200

// Width of the box of bars, and the least that one is wide, so that it is seen.
const (
	width = 1000.0
	least = 2.0
)

// Draw draws tasks between from and to, the time of the recording. A zero from is the first begin.
func Draw(tasks []Task, from, to time.Time, most int) *Drawing {
	if from.IsZero() {
		from = first(tasks, to)
	}
	if to.Sub(from) < time.Millisecond {
		from = to.Add(-time.Millisecond)
	}
	d := &Drawing{From: from, To: to}
	tasks = slices.DeleteFunc(slices.Clone(tasks), func(t Task) bool {
		unseen := t.Ended.IsZero() && t.Begun.IsZero() && t.State != "queued" && !t.First // nobody observes it
		return unseen || !t.Ended.IsZero() && t.Ended.Before(from) || t.Begun.After(to)
	})
	chosen := choose(tasks, to, min(most, Most))
	d.More = len(tasks) - len(chosen)
	for _, n := range nest(chosen) {
		d.Rows = append(d.Rows, d.row(n.task, n.depth))
	}
	const ticks = 5
	for i := range ticks {
		back := to.Sub(from) * time.Duration(ticks-1-i) / (ticks - 1)
		if back > time.Second {
			back = back.Round(100 * time.Millisecond)
		}
		text := "−" + Short(back)
		if back == 0 {
			text = "now"
		}
		d.Ticks = append(d.Ticks, Tick{text})
	}
	return d
}

// first returns when the first of tasks began that says so, to if none does.
func first(tasks []Task, to time.Time) time.Time {
	from := to
	for i := range tasks {
		if begun := tasks[i].Begun.Add(-tasks[i].Queued); !tasks[i].Begun.IsZero() && begun.Before(from) {
			from = begun
		}
	}
	return from
}

func (d *Drawing) row(t *Task, depth int) *Row {
	ended := t.Ended
	if ended.IsZero() {
		ended = d.To
	}
	r := &Row{ID: t.ID.String(), Name: t.Name, Depth: depth, Begun: d.ms(t.Begun), Ended: -1}
	r.Key = fmt.Sprintf("%v.%d", t.ID, t.Ended.UnixNano())
	if !t.Ended.IsZero() {
		r.Ended = d.ms(t.Ended)
	}
	r.Sign, r.End, r.Class = endOf(t)
	if t.Begun.IsZero() {
		r.Took = "?"
		if t.Ended.IsZero() && t.State == "queued" {
			d.bar(r, d.From, ended, "queued")
		} else {
			d.bar(r, d.From, ended, "unknown")
		}
	} else {
		r.Took = Short(ended.Sub(t.Begun))
		if t.Queued > 0 {
			d.bar(r, t.Begun.Add(-t.Queued), t.Begun, "queued")
		}
		d.bar(r, t.Begun, ended, "runs")
	}
	for _, w := range t.Waits {
		if w.Ended.IsZero() && !w.Begun.IsZero() {
			d.bar(r, w.Begun, ended, "waits")
		} else if !w.Ended.IsZero() {
			d.bar(r, w.Begun, w.Ended, "waits")
		}
	}
	r.Lines = d.lines(t)
	return r
}

// endOf returns a sign, which is a shape, words and a class for how t has ended, or stands.
func endOf(t *Task) (sign, words, class string) {
	switch {
	case t.Ended.IsZero() && t.Cause != "":
		return "!", "told to stop", "told"
	case t.Ended.IsZero() && t.State == "running" && len(t.Waits) > 0 && t.Waits[len(t.Waits)-1].Ended.IsZero():
		return "▸", "waits", "live"
	case t.Ended.IsZero():
		return "▸", t.State, "live"
	case t.Outcome == "ok":
		return "✓", "ok", "ok"
	case good[t.Outcome]:
		return "■", t.Outcome, "cancelled"
	default:
		return "✗", t.Outcome, "failed"
	}
}

// lines says all that is known of t, in words.
func (d *Drawing) lines(t *Task) (all []string) {
	if t.Place != "" {
		all = append(all, t.Place)
	}
	if t.Queued > 0 {
		all = append(all, "queued for "+Short(t.Queued))
	}
	switch {
	case t.Begun.IsZero() && t.State == "queued":
		all = append(all, "has not begun")
	case t.Begun.IsZero():
		all = append(all, "when it began is not known: nobody observes it")
	default:
		all = append(all, "began "+ago(d.To.Sub(t.Begun)))
	}
	const mostLines = 12
	for i := range t.Waits {
		if i == mostLines {
			all = append(all, fmt.Sprintf("and %d waits more", len(t.Waits)-i))
			break
		}
		w := &t.Waits[i]
		if line := w.What; w.Ended.IsZero() {
			all = append(all, line)
		} else {
			all = append(all, line+" for "+Short(w.Ended.Sub(w.Begun)))
		}
	}
	if t.Cause != "" {
		all = append(all, "told to stop: "+t.Cause)
	}
	if !t.Ended.IsZero() {
		all = append(all, "ended "+ago(d.To.Sub(t.Ended))+": "+t.Outcome)
	}
	return all
}

func ago(d time.Duration) string { return Short(max(d, 0)) + " ago" }

// heights of bars: they tell kinds apart where colours do not.
var heights = map[string][2]float64{"queued": {8, 4}, "runs": {2, 16}, "unknown": {6, 8}, "waits": {7, 6}}

func (d *Drawing) bar(r *Row, from, to time.Time, class string) {
	if to.Before(d.From) || from.After(d.To) {
		return
	}
	a, b := d.at(from), d.at(to)
	w := max(b-a, least)
	a = min(a, width-w)
	h := heights[class]
	r.Bars = append(r.Bars, Bar{number(a), number(w), number(h[0]), number(h[1]), class})
}

// at returns where a moment stands in the box.
func (d *Drawing) at(t time.Time) float64 {
	return min(max(width*float64(t.Sub(d.From))/float64(d.To.Sub(d.From)), 0), width)
}

func (d *Drawing) ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Sub(d.From).Milliseconds()
}

func number(f float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", f), "0"), ".")
}

// Short writes a duration with the digits that a person needs.
func Short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < 10*time.Second:
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
