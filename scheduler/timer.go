package scheduler

import (
	"math"
	"time"
)

// This file is about time. A worker has one timer, for the earliest deadline.

// later returns the time d after t, at most the end of time.
func later(t, d time.Duration) time.Duration {
	if t > 0 && d > math.MaxInt64-t {
		return math.MaxInt64
	}
	return t + d
}

// armLocked has the timer fire at the earliest deadline, or stops it.
func (w *ExecutorWorker) armLocked() {
	if len(w.q.heap) == 0 {
		if w.armed {
			w.armed = false
			w.timer.Stop()
		}
		return
	}
	at := w.q.heap[0].at
	if w.armed && w.due == at {
		return
	}
	w.armed, w.due = true, at
	d := time.Duration(math.MaxInt64)
	if now := clock(); now >= 0 || at <= math.MaxInt64+now { // in a synctest bubble it is below 0
		d = at - now
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(d, w.tick)
	} else {
		w.timer.Reset(d)
	}
}

// tick is called by the timer.
func (w *ExecutorWorker) tick() {
	w.mu.Lock()
	w.armed = false
	w.ripenLocked()
	w.unlock(aftermath{wake: w.wakeLocked()})
}

// ripenLocked queues what is due. A timer is late: whatever is to be ordered by
// its deadline, or depends on what is due, asks for this first.
func (w *ExecutorWorker) ripenLocked() {
	w.q.ripen(clock())
	w.armLocked()
}

// dueLocked queues what is due before something else is queued behind it.
func (w *ExecutorWorker) dueLocked() {
	if len(w.q.heap) > 0 {
		w.ripenLocked()
	}
}

// when returns t on our clock: the same for equal times, whenever it is asked.
func when(t time.Time) time.Duration {
	at := t.Sub(epoch)
	if t != t.Round(0) || at == math.MaxInt64 || at == math.MinInt64 {
		return at // it has a monotonic reading, or is beyond the ends of our clock
	}
	now := time.Now()
	stepped := now.Round(0).Sub(epoch.Round(0)) - now.Sub(epoch)
	return at - stepped.Round(10*time.Millisecond)
}

// wakeLocked reports whether the scheduler has to be told that there is
// something to do. Whoever asks does so.
func (w *ExecutorWorker) wakeLocked() bool {
	wake := w.q.length > 0 && !w.active
	w.active = w.active || wake
	return wake
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
