package main

import (
	"runtime"
	"slices"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

type work = measure.Work

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

// rows has ours and all peers take turns.
func (c contest) rows(cfg config) (rows []measure.Row) {
	ours, stop := c.ours()
	defer stop()
	sides := []work{ours}
	for _, p := range c.peers {
		sides = append(sides, p.run)
	}
	n, tasks := cfg.turn(sides), float64(max(1, c.tasks))
	runs, memory := make([]func() float64, len(sides)), make([]allocation, len(sides))
	for i, side := range sides {
		memory[i] = allocated(side, c.counted(n), tasks)
		runs[i] = func() float64 { return side.Took(n) / tasks }
	}
	took := measure.Turns(cfg.rounds, runs...)
	for i, p := range c.peers {
		row := measure.Row{ID: c.id, What: c.what, Peer: p.name, Unit: "ns", Ours: took[0], Theirs: took[i+1], Ratio: true, Memory: besides(memory[0], memory[i+1])}
		if p.limit > 0 {
			row.Budget = measure.AtMost(p.limit)
		}
		rows = append(rows, row)
	}
	if c.ns > 0 {
		rows = append(rows, measure.Row{ID: c.id, What: c.what, Unit: "ns", Ours: took[0], Budget: measure.AtMost(c.ns), Memory: alone(memory[0])})
	}
	if c.allocs >= 0 {
		rows = append(rows, measure.Row{ID: c.id, What: c.what + ", allocations a task", Unit: "allocations", Ours: measure.Sample{memory[0].number}, Budget: measure.AtMost(c.allocs)})
	}
	return rows
}

// turn returns how many units all sides do in a turn: what ours does in a slice of time, unless that takes a
// peer more than five times as long.
func (cfg config) turn(sides []work) int {
	n := sides[0].Enough(cfg.slice)
	for _, side := range sides[1:] {
		n = min(n, 5*side.Enough(cfg.slice))
	}
	return n
}

// counted returns with how many units allocations are counted, where a turn has n: so many that
// what the runtime allocates beside does not show.
func (c contest) counted(n int) int {
	if c.tasks > 1 {
		return max(1, n/2)
	}
	return max(n, 100)
}

// An allocation is what a task allocates.
type allocation struct{ number, bytes float64 }

// allocated returns what a task allocates: the least of some runs, for the runtime allocates a little beside.
func allocated(run work, units int, tasks float64) allocation {
	run(units)
	var all []allocation
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run(units)
		runtime.ReadMemStats(&after)
		n := float64(units) * tasks
		all = append(all, allocation{float64(after.Mallocs-before.Mallocs) / n, float64(after.TotalAlloc-before.TotalAlloc) / n})
	}
	return slices.MinFunc(all, func(a, b allocation) int { return int(1e6 * (a.number - b.number)) })
}

func alone(a allocation) *measure.Memory {
	return &measure.Memory{Allocs: a.number, Bytes: a.bytes}
}

func besides(a, peer allocation) *measure.Memory {
	return &measure.Memory{Allocs: a.number, Bytes: a.bytes, PeerAllocs: peer.number, PeerBytes: peer.bytes, Beside: true}
}

func median(all []float64) float64 { return measure.Sample(all).Median() }

// live returns the bytes of all that is in use: on the heap and in stacks.
func live() float64 {
	runtime.GC()
	runtime.GC() // what is in a pool goes in the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
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
