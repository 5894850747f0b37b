package asyncz

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/internal/timeline"
	"github.com/ambit-go/ambit/async/picture"
	"github.com/ambit-go/ambit/async/record"
)

// This file shows what a recorder has.

// A failure is a row of the last failures.
type failure struct{ Name, ID, Ago, Outcome, Error string }

// listedFailures is how many are shown.
const listedFailures = 20

// recordingOf returns what was recorded until pic was made, without texts unless they are to be shown.
func (p *Page) recordingOf(pic *picture.Tree) *record.Recording {
	r := p.rec.Recording(pic)
	for i := range r.Failures {
		if !p.texts {
			r.Failures[i].Text = ""
		}
	}
	return r
}

// recording returns what was recorded until the last look.
func (p *Page) recording() *record.Recording {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recorded
}

// showRecorded adds to a page what was recorded.
func (p *Page) showRecorded(shown *page, c *chooser) {
	r := p.recording()
	shown.Recorded, shown.Failures = true, lastFailures(r, c.pic.At)
	shown.Timeline, shown.Spans, shown.Minute = c.timeline(r), c.q.spans(), lastMinute(r)
	if shown.Saved {
		var b bytes.Buffer
		_ = r.Save(&b) // a Buffer does not fail
		shown.Data = timeline.Data(b.Bytes())
	}
}

// mostDrawn is how many tasks the time line of a page that renews itself has.
const mostDrawn = 40

// timeline draws what was recorded in the time that was asked for.
func (c *chooser) timeline(r *record.Recording) *timeline.Drawing {
	from, most := r.At.Add(-time.Minute), mostDrawn
	switch c.q.Span {
	case "all":
		from = time.Time{}
	case "10m", "10s":
		span, _ := time.ParseDuration(c.q.Span)
		from = r.At.Add(-span)
	}
	if c.q.Saved {
		from, most = time.Time{}, timeline.Most
	}
	var (
		events []timeline.Event
		waits  []timeline.OverWait
		live   []timeline.Live
	)
	for i := range r.Events {
		events = append(events, timeline.Event(r.Events[i]))
	}
	for i := range r.Waits {
		waits = append(waits, timeline.OverWait(r.Waits[i]))
	}
	for i := range r.Live {
		live = append(live, timeline.Live(r.Live[i]))
	}
	tasks := timeline.Tasks(events, waits, live)
	for i := range tasks {
		tasks[i].Name, tasks[i].Cause = clean(tasks[i].Name), clean(tasks[i].Cause)
		c.waitsSince(&tasks[i])
		tasks[i].First = tasks[i].Ended.IsZero() && len(c.wrong[tasks[i].ID]) > 0
	}
	d := timeline.Draw(tasks, from, r.At, most)
	d.Lost, d.Spared = r.Lost, r.Spared
	for _, row := range d.Rows {
		if row.Ended < 0 && !c.q.Saved {
			row.Link = c.q.With("under", "", "problem", "", "state", "", "name", "#"+row.ID) + "#t" + row.ID
		}
	}
	return d
}

// waitsSince says of a task that waits since when the page has seen that.
func (c *chooser) waitsSince(t *timeline.Task) {
	n := c.nodes[t.ID]
	if last := len(t.Waits) - 1; last >= 0 && t.Waits[last].Ended.IsZero() && n != nil && len(n.Waits) > 0 {
		w := &n.Waits[0]
		t.Waits[last].Begun = c.known.waits(waitKey{n.ID, w.How, w.Mark})
	}
}

// A span is a choice of how much the time line shows.
type span struct{ Name, Value, Link string }

func (q *query) spans() (all []span) {
	for _, s := range []span{
		{Name: "10 seconds", Value: "10s"}, {Name: "a minute"},
		{Name: "10 minutes", Value: "10m"}, {Name: "all", Value: "all"},
	} {
		s.Link = q.With("span", s.Value) + "#timeline"
		all = append(all, s)
	}
	return all
}

// A series is the tasks of one name that have ended in the last minute.
type series struct {
	Name                     string
	Ended, Failed, Cancelled int
	Median, Longest          string
	took                     []time.Duration
}

// mostSeries is how many names are listed.
const mostSeries = 20

// lastMinute returns what has ended in the last minute, by names without digits: those with failures first, then
// those that are most.
func lastMinute(r *record.Recording) (all []*series) {
	by := make(map[string]*series)
	for i := range slices.Backward(r.Events) {
		e := &r.Events[i]
		if e.Ended.Before(r.At.Add(-time.Minute)) {
			break
		}
		name := picture.Alike(clean(e.Task))
		s := by[name]
		if s == nil {
			s = &series{Name: name}
			by[name] = s
			all = append(all, s)
		}
		s.Ended++
		s.took = append(s.took, e.Took)
		switch e.Outcome {
		case "ok":
		case "cancelled", "skipped":
			s.Cancelled++
		default:
			s.Failed++
		}
	}
	for _, s := range all {
		slices.Sort(s.took)
		s.Median, s.Longest = timeline.Short(s.took[len(s.took)/2]), timeline.Short(s.took[len(s.took)-1])
	}
	slices.SortStableFunc(all, func(a, b *series) int {
		return cmp.Or(cmp.Compare(b.Failed, a.Failed), cmp.Compare(b.Ended, a.Ended), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), mostSeries)]
}

// lastFailures returns the last failures, the last one first.
func lastFailures(r *record.Recording, now time.Time) (all []failure) {
	for i := len(r.Failures) - 1; i >= 0 && len(all) < listedFailures; i-- {
		f := &r.Failures[i]
		one := failure{Name: clean(f.Task), ID: f.ID.String(), Outcome: f.Outcome, Error: clean(f.Type)}
		one.Ago = short(max(now.Sub(f.At), 0).Truncate(time.Millisecond))
		if f.Text != "" {
			one.Error += ": " + clean(f.Text)
		}
		all = append(all, one)
	}
	return all
}

// serveRecorded answers with a file.
func (p *Page) serveRecorded(w http.ResponseWriter, format string) {
	p.look(false)
	if r := p.recording(); format == "trace" {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Disposition", `attachment; filename="async-trace.json"`)
		_ = r.WriteTrace(w) // whoever has asked may be gone
	} else {
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("Content-Disposition", `attachment; filename="async-recording.gz"`)
		_ = r.Save(w)
	}
}
