package scheduler

import (
	"math"
	"time"
)

// This file is about time. A worker has one timer, for the earliest deadline.

// epoch is when our clock began.
var epoch = time.Now()

func clock() time.Duration { return time.Since(epoch) }

// later returns the time d after t, at most the end of time.
func later(t, d time.Duration) time.Duration {
	if t > 0 && d > math.MaxInt64-t {
		return math.MaxInt64
	}
	return t + d
}

// armLocked has the timer fire at the earliest deadline, or stops it.
func (w *ExecutorWorker) armLocked() {
	switch {
	case len(w.q.heap) > 0:
		if !w.armed || w.due != w.q.heap[0].at {
			w.setLocked(w.q.heap[0].at, clock())
		}
	case w.armed:
		w.armed = false
		w.timer.Stop()
	}
}

// armFromLocked is armLocked after something was delayed, for a caller that has
// read the clock: reading it costs as much as all else that delaying does. If
// the caller has waited for the lock since, the timer fires late by that.
func (w *ExecutorWorker) armFromLocked(now time.Duration) {
	if at := w.q.heap[0].at; !w.armed || w.due != at {
		w.setLocked(at, now)
	}
}

// setLocked has the timer fire at at. Our clock stands at now.
func (w *ExecutorWorker) setLocked(at, now time.Duration) {
	w.armed, w.due = true, at
	d := time.Duration(math.MaxInt64)
	if now >= 0 || at <= math.MaxInt64+now { // in a synctest bubble now is below 0
		d = at - now
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(d, w.timerFires)
	} else {
		w.timer.Reset(d)
	}
}

// timerFires queues what is due. If the timer was set anew a moment ago, nothing
// may be, and it stays set.
func (w *ExecutorWorker) timerFires() {
	w.mu.Lock()
	w.armed = false
	w.queueDueLocked()
	w.armLocked()
	w.unlock(afterwards{drops: drops{w: w}, wake: w.wakeLocked()})
}

// queueDueLocked moves what is due to the end of the queue. A timer is late:
// whatever is to be queued behind what is due, or depends on it, asks for this
// first.
func (w *ExecutorWorker) queueDueLocked() {
	if len(w.q.heap) > 0 { // measured: most have nothing to wait for, and then this costs nothing
		w.queueDelayedLocked()
	}
}

func (w *ExecutorWorker) queueDelayedLocked() {
	w.q.queueDue(clock())
	w.armLocked()
}

// onClock returns t on our clock: the same for equal times, whenever it is asked.
func onClock(t time.Time) time.Duration {
	at := t.Sub(epoch)
	if t != t.Round(0) || at == math.MaxInt64 || at == math.MinInt64 {
		return at // it has a monotonic reading, or is beyond the ends of our clock
	}
	now := time.Now()
	stepped := now.Round(0).Sub(epoch.Round(0)) - now.Sub(epoch)
	return at - stepped.Round(10*time.Millisecond)
}

func newPeriod(every time.Duration, opts []EveryOption) *period {
	p := &period{every: max(every, 0)}
	for _, o := range opts {
		o(p)
	}
	return p
}

// after returns when to run again after a run that ended at now.
func (p *period) after(now time.Duration) time.Duration {
	switch {
	case p.every == 0:
		return now
	case p.delay:
		return later(now, p.every)
	}
	p.next = later(p.next, p.every)
	if missed := now - p.next; missed > 0 && !p.burst {
		p.next = later(p.next, (missed+p.every-1)/p.every*p.every)
	}
	return p.next
}
