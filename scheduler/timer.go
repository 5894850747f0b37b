package scheduler

import (
	"math"
	"time"
)

// This file is about time. A worker has one timer, for the earliest deadline.

// An alarm is that timer. The caller of a method holds the worker's lock.
type alarm struct {
	timer *time.Timer // nil until it is needed
	armed bool        // timer runs
	due   time.Duration
}

// set has w, whose alarm it is, look for what is due at at. Our clock stands at now.
func (a *alarm) set(at, now time.Duration, w *ExecutorWorker) {
	if a.armed && a.due == at {
		return
	}
	a.armed, a.due = true, at
	d := time.Duration(math.MaxInt64)
	if now >= 0 || at <= math.MaxInt64+now { // in a synctest bubble now is below 0
		d = at - now
	}
	if a.timer == nil {
		a.timer = time.AfterFunc(d, w.timerFires)
	} else {
		a.timer.Reset(d)
	}
}

// stop has the alarm call nobody.
func (a *alarm) stop() {
	if a.armed {
		a.armed = false
		a.timer.Stop()
	}
}

// armLocked has the timer fire at the earliest deadline, or stops it.
func (w *ExecutorWorker) armLocked() {
	switch {
	case len(w.q.heap) == 0:
		w.alarm.stop()
	case !w.alarm.armed || w.alarm.due != w.q.heap[0].at: // else the clock need not be read
		w.alarm.set(w.q.heap[0].at, clock(), w)
	}
}

// timerFires queues what is due. If the timer was set anew a moment ago, nothing
// may be, and it stays set.
func (w *ExecutorWorker) timerFires() {
	w.mu.Lock()
	w.alarm.armed = false
	w.queueDueLocked()
	w.armLocked()
	a := w.dropping(Cancelled, nil) // nothing is
	a.wake = w.life.wake(w.q.length)
	w.unlock(&a)
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
