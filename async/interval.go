package async

import (
	"math"
	"math/rand/v2"
	"time"
)

// This file is about the time between two probes or checks.

// minInterval is the shortest wait between probes; less would be a spin.
const minInterval = time.Millisecond

// An Interval returns how long to wait before the next probe when attempt
// probes have been made. Waits below 1 ms are 1 ms.
type Interval func(attempt int) time.Duration

// Every returns an interval that is always d.
//
//	pod := async.Poll(ctx, async.Every(time.Second), phase)
//
// # Details
//
// A d below 1 ms counts as 1 ms.
func Every(d time.Duration) Interval {
	return func(int) time.Duration { return d }
}

// Backoff returns an interval that starts with initial and doubles after every probe
// until it is limit.
//
//	row, err := async.Retry(ctx, async.Backoff(10*time.Millisecond, time.Second), load)
//
// # Details
//
// A limit below initial counts as initial.
func Backoff(initial, limit time.Duration) Interval {
	initial = max(initial, minInterval)
	limit = max(initial, limit)
	return func(attempt int) time.Duration {
		d := initial
		for ; attempt > 1 && d < limit; attempt-- {
			if d > limit/2 {
				return limit
			}
			d *= 2
		}
		return d
	}
}

// Jitter returns an interval that is in, more or less: each wait is multiplied by a
// random factor between 1-fraction and 1+fraction.
//
//	interval := async.Jitter(0.2, async.Every(time.Minute))
//
// # Details
//
// The fraction is limited to 0 to 1; what is no number counts as 0. A nil in panics.
func Jitter(fraction float64, in Interval) Interval {
	mustHaveInterval("Jitter", in)
	if !(fraction > 0) { // also if it is NaN
		fraction = 0
	}
	fraction = min(fraction, 1)
	return func(attempt int) time.Duration {
		d := float64(in(attempt)) * (1 + fraction*(2*rand.Float64()-1))
		if d >= math.MaxInt64 {
			return math.MaxInt64
		}
		return time.Duration(max(d, 0))
	}
}

func mustHaveInterval(what string, in Interval) {
	if in == nil {
		panic("async: " + what + " with a nil interval: use Every, Backoff or a function of your own")
	}
}

// forever is the end of time on our clock, and the longest time there is. Waits
// of users may come near to both, and in a synctest bubble the clock is below
// zero, so that to the end of time it is longer than the longest time.
const forever time.Duration = math.MaxInt64

// later returns the time d after t, at most the end of time. d must not be
// negative.
func later(t, d time.Duration) time.Duration {
	if t > forever-d {
		return forever
	}
	return t + d
}

// between returns how long it is from one time to a later one.
func between(from, to time.Duration) time.Duration {
	if from < 0 && to > forever+from {
		return forever
	}
	return to - from
}

// nextTick returns the first time at or after earliest of a grid that has due
// on it and a tick every d.
func nextTick(due, d, earliest time.Duration) time.Duration {
	if due >= earliest {
		return due
	}
	missed := between(due, earliest)
	ticks := missed / d
	if missed%d != 0 {
		ticks++
	}
	if missed == forever || ticks > forever/d {
		return forever
	}
	return later(due, ticks*d)
}
