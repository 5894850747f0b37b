package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A work does n units. It panics if something comes out wrong.
type work func(n int)

// A contest is a piece of work as ours does it, and peers that do the same.
type contest struct {
	id, what string
	ours     func() (run work, stop func())
	peers    []rival
	allocs   float64 // at most so many a task; negative if there is no budget
	tasks    int     // tasks in a unit; 0 means 1
	ns       float64 // at most so many a unit on a quiet machine; 0 if there is no budget
}

// A rival does the same by other means. Ours may take limit times as long; 0 if
// that is only good to know.
type rival struct {
	name  string
	limit float64
	run   work
}

// always is work that needs nothing set up.
func always(run work) func() (work, func()) {
	return func() (work, func()) { return run, func() {} }
}

// took returns how many nanoseconds a unit takes in a run of n.
func took(run work, n int) float64 {
	start := time.Now()
	run(n)
	return float64(time.Since(start)) / float64(n)
}

// enough returns how many units take some 20 ms.
func enough(run work) int {
	for n := 1; ; n *= 2 {
		start := time.Now()
		run(n)
		if d := time.Since(start); d > 10*time.Millisecond || n >= 1<<22 {
			return max(1, int(float64(n)*20e6/float64(max(d, 1))))
		}
	}
}

func median[T cmp.Ordered](all []T) T {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// ratio has two works take turns, each being first in every other turn, and
// returns the median of how long ours takes for every nanosecond of the peer's.
func ratio(rounds int, ours, peer work) float64 {
	n := enough(peer)
	ours(max(1, n/10))
	ratios := make([]float64, rounds)
	for i := range ratios {
		var a, b float64
		if i%2 == 0 {
			a, b = took(ours, n), took(peer, n)
		} else {
			b = took(peer, n)
			a = took(ours, n)
		}
		ratios[i] = a / b
	}
	return median(ratios)
}

// allocated returns how many allocations a unit makes: the least of five runs,
// for the runtime allocates a little beside.
func allocated(run work, n int) float64 {
	run(n)
	least := -1.0
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run(n)
		runtime.ReadMemStats(&after)
		if a := float64(after.Mallocs-before.Mallocs) / float64(n); least < 0 || a < least {
			least = a
		}
	}
	return least
}

// live returns the bytes of all that is in use: on the heap and in stacks.
func live() float64 {
	runtime.GC()
	runtime.GC() // what is in a pool goes in the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// A table is printed as it grows, one row after another.
type table struct{ widths []int }

func (t table) row(cells ...string) {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(" | ")
		}
		fmt.Fprintf(&b, "%-*s", t.widths[i], cell)
	}
	fmt.Println(strings.TrimRight(b.String(), " "))
}

// kept says whether a budget is kept, for the last column. The last digit that
// is printed decides.
func kept(measured, limit float64) string {
	if measured <= limit+0.005 {
		return "ok"
	}
	return "OVER"
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func mustBe(ok bool) {
	if !ok {
		panic("a wrong answer")
	}
}
