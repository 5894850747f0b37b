package page

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
	"github.com/ambit-go/ambit/taskqueue/internal/sums"
)

// A kindView is the charts of a type.
type kindView struct {
	Queue, Type string
	Spans       []span
	Span        span
	Charts      []chart
	Runs        int64 // in the time of the charts
	None        bool  // the store keeps no sums
	Failures    []look.Failure
}

// A span is a time that charts show.
type span struct {
	Name  string // in the URL
	Words string
	step  sums.Step
	join  int // spans of the step that are one point
	ticks time.Duration
	form  string // of the time at a tick
}

var spans = []span{
	{"", "6 hours", sums.Minutes, 3, time.Hour, "15:04"},
	{"2d", "2 days", sums.TenMinutes, 3, 12 * time.Hour, "Jan 2 15:04"},
	{"30d", "30 days", sums.Hours, 6, 7 * 24 * time.Hour, "Jan 2"},
}

// serveKind shows the charts of a type.
func (p *Page) serveKind(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	k := &kindView{Queue: q.Get("queue"), Type: q.Get("type"), Spans: spans, Span: spans[0]}
	for _, s := range spans {
		if s.Name == q.Get("span") {
			k.Span = s
		}
	}
	s, _, err := p.look(r)
	if err == nil {
		for _, f := range s.Failures {
			if f.Type == k.Type {
				k.Failures = append(k.Failures, f)
			}
		}
	}
	known := s != nil && len(s.Queues) > 0
	notes, is := p.store.(taskqueue.NoteStore)
	if k.None = !is; err == nil && is && known && p.shows(k.Queue) {
		err = p.ask(r.Context(), func(ctx context.Context) error {
			now := time.Now()
			all, err := sums.Last(ctx, notes, k.Queue, []string{k.Type}, k.Span.step, k.Span.step.Kept, now)
			if err == nil {
				k.draw(all[k.Type], now)
			}
			return err
		})
	}
	v := newView(r, "kind", err)
	v.Kind, v.Known, v.Title = k, err == nil && known, kindName(k.Type)
	p.show(w, status(lacks(s, k.Queue), err), v)
}

// draw makes the charts, of a point for several spans each.
func (k *kindView) draw(all []sums.Sums, now time.Time) {
	var done, failed, late, lateMost, took, tookMost []float64
	for some := range slices.Chunk(all, k.Span.join) {
		s := &some[0]
		for i := range some[1:] {
			s.Add(&some[i+1])
		}
		k.Runs += s.Took.N()
		per := min(now.Sub(s.At), k.Span.step.Span*time.Duration(len(some))).Minutes() // the last is not over
		per = max(per, 1.0/6)
		done, failed = append(done, float64(s.Done)/per), append(failed, float64(s.Failed)/per)
		mean, most := spread(&s.Late)
		late, lateMost = append(late, mean), append(lateMost, most)
		mean, most = spread(&s.Took)
		took, tookMost = append(took, mean), append(tookMost, most)
	}
	x := axis{all[0].At, all[len(all)-1].At, k.Span.ticks, k.Span.form}
	k.Charts = []chart{
		draw("Runs a minute", x, plain.Rate, series{"done", "done", done}, series{"bad", "failed", failed}),
		draw("How late runs begin", x, plain.Span, series{"done", "on average", late}, series{"most", nearly, lateMost}),
		draw("How long runs take", x, plain.Span, series{"done", "on average", took}, series{"most", nearly, tookMost}),
	}
}

const nearly = "99 of 100 at most"

// none says that there is no value.
const none = -1

// spread is what s has on average, and what 99 of 100 have at most.
func spread(s *sums.Spread) (mean, most float64) {
	if s.N() == 0 {
		return none, none
	}
	return s.Mean().Seconds(), s.Most(0.99).Seconds()
}
