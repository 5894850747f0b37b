package jobqueue

import (
	"math"
	"time"
)

// This file is about time. A queue has one timer, for the delayed job whose
// time comes first.

var epoch = time.Now()

// clock returns the time since the process started; in a synctest bubble it is
// below 0.
func clock() time.Duration { return time.Since(epoch) }

// after returns the time d after now, at most the end of time.
func after(now, d time.Duration) time.Duration {
	if d <= 0 {
		return now
	}
	if now > 0 && d > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + d
}

// armLocked has the timer fire when the first delayed job is due. If there is
// none, or the queue is closed, it stops the timer.
func (q *Queue[K, T]) armLocked(t *turn[K, T]) {
	first := q.core.delayed.min()
	if first == nil || q.core.closed {
		if q.armed {
			q.armed = false
			q.timer.Stop()
		}
		return
	}
	if q.armed && q.due == first.at {
		return
	}
	q.armed, q.due = true, first.at
	d := first.at - t.time()
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.tick)
	} else {
		q.timer.Reset(d)
	}
}

// tick is called by the timer. A turn begins with what is due, so it has nothing
// to do but to take one. The timer may have been set anew since it fired: then
// armed is wrong until the end of the turn, which sets it again.
func (q *Queue[K, T]) tick() {
	var t turn[K, T]
	q.lock(&t)
	q.armed = false
	q.unlock(&t)
}
