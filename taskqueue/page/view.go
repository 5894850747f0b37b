package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

var (
	//go:embed page.html
	markup string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

// policy allows the style and the script of the page, by their hashes, and requests to
// where the page is from. Nothing else is loaded or run.
var policy = "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script) +
	"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var document = template.Must(template.New("page").Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(style) },
	"script": func() template.JS { return template.JS(script) },
	"line":   plain.Line,
	"count":  plain.Count[int64],
	"number": plain.Count[int],
	"rate":   plain.Rate,
	"span":   plain.Span,
	"link":   func(queue string) string { return "?queue=" + url.QueryEscape(queue) },
}).Parse(markup))

// A view is what the page shows.
type view struct {
	*look.Snapshot
	Store string
	Now   time.Time
	One   string // the only queue that is shown
	Still bool   // does not renew itself where there is no JavaScript
	Error string // the store does not answer
	Known bool   // there is a picture
	Total look.Queue
	Most  int // tasks of a list, of a queue
}

func newView(s *look.Snapshot, err error, now time.Time) *view {
	v := &view{Snapshot: s, Now: now, Known: s != nil, Most: look.MaxTasks}
	if s == nil {
		v.Snapshot = new(look.Snapshot)
	}
	if err != nil {
		v.Error = plain.Line(err.Error())
	}
	v.Total.States, v.Total.Rates = map[taskqueue.State]int64{}, map[taskqueue.Counter]float64{}
	for _, q := range v.Queues {
		for st, n := range q.States {
			v.Total.States[st] += n
		}
		for c, r := range q.Rates {
			v.Total.Rates[c] += r
		}
		v.Total.LateSeconds = max(v.Total.LateSeconds, q.LateSeconds)
		v.Total.RateSeconds = max(v.Total.RateSeconds, q.RateSeconds)
	}
	return v
}

// In is how many tasks a queue has in a state.
func (v *view) In(q look.Queue, state string) (int64, error) {
	st, err := taskqueue.ParseState(state)
	return q.States[st], err
}

// Rate is how often a second something happens in a queue.
func (v *view) Rate(q look.Queue, counter string) string {
	if q.RateSeconds == 0 {
		return "–"
	}
	return plain.Rate(q.Rates[taskqueue.Counter(counter)])
}

// Left says how many tasks of a state a list does not show.
func (v *view) Left(state string, shown int) (int64, error) {
	n, err := v.In(v.Total, state)
	return max(n-int64(shown), 0), err
}

// Ago and Until are how long a time is from now.
func (v *view) Ago(t time.Time) string   { return plain.Span(v.Now.Sub(t).Seconds()) }
func (v *view) Until(t time.Time) string { return plain.Span(t.Sub(v.Now).Seconds()) }

// Over reports whether a time has passed.
func (v *view) Over(t time.Time) bool { return t.Before(v.Now) }

// Stuck reports whether a run that has begun at t lasts for too long.
func (v *view) Stuck(t time.Time) bool { return v.Now.Sub(t) > taskqueue.StuckAfter }

// Stamp is a time for machines and tooltips.
func (v *view) Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Clock is the time of the picture.
func (v *view) Clock() string { return v.At.UTC().Format("15:04:05") + " UTC" }

// Limits says what is set for a queue.
func (v *view) Limits(q look.Queue) string {
	var all []string
	s := q.Settings
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(s.Concurrency > 0, "at most %d run", s.Concurrency)
	add(s.Rate > 0, "at most %v a second", s.Rate)
	add(s.Rate > 0 && s.Burst > 1, "%d at once", s.Burst)
	add(len(q.Limits) > 0, "limits of %s keys or types", plain.Count(int64(len(q.Limits))))
	add(s.MaxDead > 0, "%s dead letters kept", plain.Count(int64(s.MaxDead)))
	add(s.DeadRetention > 0, "dead letters kept for %s", plain.Span(s.DeadRetention.Seconds()))
	return strings.Join(all, ", ")
}

// The size of a sparkline.
const sparkWidth, sparkHeight = 120, 24

// A Spark is a history as a line.
type Spark struct {
	Done, Failed string // points
	Says         string // what it shows, in words
}

// Spark returns the history of a queue; nil if there is none.
func (v *view) Spark(q look.Queue) *Spark {
	if len(q.History) < 2 {
		return nil
	}
	first, last := q.History[0].At, q.History[len(q.History)-1].At
	most, mostFailed := 0.0, 0.0
	for _, p := range q.History {
		most, mostFailed = max(most, p.Done), max(mostFailed, p.Failed)
	}
	top := max(most, mostFailed, 0.001)
	var done, failed strings.Builder
	for _, p := range q.History {
		x := float64(sparkWidth) * p.At.Sub(first).Seconds() / last.Sub(first).Seconds()
		y := func(value float64) float64 { return 1 + float64(sparkHeight-2)*(1-value/top) }
		_, _ = fmt.Fprintf(&done, "%.1f,%.1f ", x, y(p.Done))
		_, _ = fmt.Fprintf(&failed, "%.1f,%.1f ", x, y(p.Failed))
	}
	s := &Spark{Done: done.String(), Says: fmt.Sprintf("the last %s: at most %s done and %s failed a second", plain.Span(last.Sub(first).Seconds()), plain.Rate(most), plain.Rate(mostFailed))}
	if mostFailed > 0 {
		s.Failed = failed.String()
	}
	return s
}
