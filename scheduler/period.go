package scheduler

import "time"

// period is how a periodic task goes on.
type period struct {
	every   time.Duration
	delay   bool          // from the end of one run to the start of the next
	burst   bool          // missed ticks are caught up
	next    time.Duration // the tick of the grid that is due; only for the drain
	stopped bool          // it is not to run again; guarded by the worker's mu
}

// An EveryOption changes how a periodic task is repeated.
type EveryOption func(*period)

// FixedDelay measures the period from the end of one run to the start of the next.
//
//	w.ScheduleEvery(0, time.Minute, sweep, scheduler.FixedDelay())
//
// # Details
//
// Without FixedDelay runs are on the grid of first and period, and ticks that were missed
// are skipped.
func FixedDelay() EveryOption { return func(p *period) { p.delay = true } }

// Burst catches up: every tick that was missed is run, one after the other, from when the
// run that missed them has ended.
//
//	w.ScheduleEvery(0, time.Minute, count, scheduler.Burst())
func Burst() EveryOption { return func(p *period) { p.burst = true } }

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
