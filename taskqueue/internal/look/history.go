package look

import (
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

const (
	// Step is the time between two samples that are kept.
	Step       = 5 * time.Second
	maxSamples = 120              // ten minutes
	rateOver   = 10 * time.Second // what a rate is made from, at least, if there is as much
	minRate    = 500 * time.Millisecond
	maxSilence = 15 * time.Minute // a sample that is older says nothing about now
)

// counters are those that rates are made of.
var counters = [...]taskqueue.Counter{
	taskqueue.CountAdded, taskqueue.CountClaimed, taskqueue.CountDone, taskqueue.CountFailed,
	taskqueue.CountCrashed, taskqueue.CountDead, taskqueue.CountCancelled, taskqueue.CountReleased,
}

const done, failed = 2, 3 // their places in counters

// A sample is the counters of a queue at a time.
type sample struct {
	at     time.Time
	counts [len(counters)]int64
}

// A history is the samples of one queue, the oldest first.
type history struct{ samples []sample }

// note notes the counters of all queues, and makes their rates. It is called with l
// locked.
func (l *Looker) note(s *Snapshot) {
	seen := map[string]*history{}
	for i := range s.Queues {
		q := &s.Queues[i]
		h := l.samples[q.Name]
		if h == nil {
			h = new(history)
		}
		seen[q.Name] = h
		if q.Error == "" {
			h.note(q, s.At)
		}
	}
	l.samples = seen // queues that are gone are forgotten
}

// note notes the counters of q, and makes its rates.
func (h *history) note(q *Queue, now time.Time) {
	this := sample{at: now}
	for i, c := range counters {
		this.counts[i] = q.Counts[c]
	}
	if h.broken(this) {
		h.samples = nil
	}
	if before, ok := h.before(now); ok {
		over := now.Sub(before.at).Seconds()
		q.RateSeconds, q.Rates = over, map[taskqueue.Counter]float64{}
		for i, c := range counters {
			q.Rates[c] = float64(this.counts[i]-before.counts[i]) / over
		}
	}
	if n := len(h.samples); n == 0 || now.Sub(h.samples[n-1].at) >= Step {
		h.samples = append(h.samples, this)
		if n == maxSamples {
			h.samples = append(h.samples[:0], h.samples[1:]...)
		}
	}
	q.History = h.points()
}

// broken reports whether nothing can be told from the samples: a counter was set back,
// so this is another queue of the same name, or the clock was, or they are too old.
func (h *history) broken(this sample) bool {
	if len(h.samples) == 0 {
		return false
	}
	last := h.samples[len(h.samples)-1]
	if this.at.Before(last.at) || this.at.Sub(last.at) > maxSilence {
		return true
	}
	for i, n := range this.counts {
		if n < last.counts[i] {
			return true
		}
	}
	return false
}

// before returns the sample that rates are made from: the last that is old enough, or
// the oldest.
func (h *history) before(now time.Time) (sample, bool) {
	for i := len(h.samples) - 1; i >= 0; i-- {
		if now.Sub(h.samples[i].at) >= rateOver {
			return h.samples[i], true
		}
	}
	if len(h.samples) == 0 || now.Sub(h.samples[0].at) < minRate {
		return sample{}, false
	}
	return h.samples[0], true
}

func (h *history) points() (all []Point) {
	for i := 1; i < len(h.samples); i++ {
		a, b := h.samples[i-1], h.samples[i]
		over := b.at.Sub(a.at).Seconds()
		all = append(all, Point{b.at,
			float64(b.counts[done]-a.counts[done]) / over,
			float64(b.counts[failed]-a.counts[failed]) / over})
	}
	return all
}
