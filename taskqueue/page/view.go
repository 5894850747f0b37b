package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
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
	"count":  count[int64],
	"number": count[int],
	"rate":   rate,
	"span":   span,
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
	return rate(q.Rates[taskqueue.Counter(counter)])
}

// Left says how many tasks of a state a list does not show.
func (v *view) Left(state string, shown int) (int64, error) {
	n, err := v.In(v.Total, state)
	return max(n-int64(shown), 0), err
}

// Ago and Until are how long a time is from now.
func (v *view) Ago(t time.Time) string   { return span(v.Now.Sub(t).Seconds()) }
func (v *view) Until(t time.Time) string { return span(t.Sub(v.Now).Seconds()) }

// Over reports whether a time has passed.
func (v *view) Over(t time.Time) bool { return t.Before(v.Now) }

// Stamp is a time for machines and tooltips.
func (v *view) Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Clock is the time of the picture.
func (v *view) Clock() string { return v.At.UTC().Format("15:04:05") + " UTC" }

// Limits says what is set for a queue.
func (v *view) Limits(s taskqueue.Settings) string {
	var all []string
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(s.Concurrency > 0, "at most %d run", s.Concurrency)
	add(s.Rate > 0, "at most %v a second", s.Rate)
	add(s.Rate > 0 && s.Burst > 1, "%d at once", s.Burst)
	add(s.MaxDead > 0, "%s dead letters kept", count(int64(s.MaxDead)))
	add(s.DeadRetention > 0, "dead letters kept for %s", span(s.DeadRetention.Seconds()))
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
	s := &Spark{Done: done.String(), Says: fmt.Sprintf("the last %s: at most %s done and %s failed a second", span(last.Sub(first).Seconds()), rate(most), rate(mostFailed))}
	if mostFailed > 0 {
		s.Failed = failed.String()
	}
	return s
}

// count writes a number with its thousands apart.
func count[T int | int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// rate writes a number of events a second.
func rate(r float64) string {
	switch {
	case r == 0:
		return "0"
	case r < 0.01:
		return "<0.01"
	case r < 1:
		return strconv.FormatFloat(r, 'f', 2, 64)
	case r < 100:
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return count(int64(math.Round(r)))
}

// span writes a number of seconds as people do.
func span(seconds float64) string {
	sign := ""
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	s := int64(seconds)
	switch {
	case seconds < 0.0005:
		return "0 s"
	case seconds < 1:
		return fmt.Sprintf("%s%.0f ms", sign, seconds*1000)
	case seconds < 10:
		return fmt.Sprintf("%s%.1f s", sign, seconds)
	case s < 120:
		return fmt.Sprintf("%s%d s", sign, s)
	case s < 2*3600:
		return fmt.Sprintf("%s%d min %d s", sign, s/60, s%60)
	case s < 48*3600:
		return fmt.Sprintf("%s%d h %d min", sign, s/3600, s/60%60)
	}
	return fmt.Sprintf("%s%s days", sign, count(s/86400))
}
