package main

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// A curve is a piece of work that n do at the same time, for each n.
type curve struct {
	ID, group, what, axis string
	at                    []int
	waits                 bool
	with                  func(n int) (run measure.Work, stop func())
}

// curves returns all.
func curves() []curve {
	return slices.Concat(asyncCurves(), schedulerCurves(), jobqueueCurves(), durableCurves())
}

// few and many are the numbers of workers, producers and consumers.
var (
	few  = []int{1, 2, 3, 4, 6, 8, 12, 16, 32}
	many = []int{1, 2, 4, 8, 16, 32, 64}
)

// processors are the numbers of processors, up to those that there are.
func processors() (all []int) {
	for n := 1; n <= runtime.NumCPU(); n++ {
		if n <= 4 || n%4 == 0 {
			all = append(all, n)
		}
	}
	return all
}

// measure has all points take turns.
func (c curve) measure(rounds int, slice time.Duration) measure.Curve {
	var runs []func() float64
	for _, n := range c.at {
		run, stop := c.with(n)
		defer stop()
		units := run.Enough(slice)
		runs = append(runs, func() float64 { return 1e9 / run.Took(units) })
	}
	measured := measure.Curve{ID: c.ID, Group: c.group, What: c.what, Axis: c.axis, Waits: c.waits}
	for i, x := range measure.Turns(rounds, runs...) {
		measured.Points = append(measured.Points, measure.Point{N: c.at[i], X: x})
	}
	return measured
}

// fixed is work that needs nothing set up.
func fixed(run func(n, units int)) func(n int) (measure.Work, func()) {
	return func(n int) (measure.Work, func()) {
		return func(units int) { run(n, units) }, func() {}
	}
}

// onProcessors is the work that n do, with n processors.
func onProcessors(run func(n, units int)) func(n int) (measure.Work, func()) {
	return fixed(func(n, units int) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
		run(n, units)
	})
}

// share calls f on n goroutines, each with its part of the units.
func share(n, units int, f func(units int)) {
	var all sync.WaitGroup
	for i := range n {
		part := units / n
		if i < units%n {
			part++
		}
		all.Go(func() { f(part) })
	}
	all.Wait()
}
