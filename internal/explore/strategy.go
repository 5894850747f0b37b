package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// letTimePass is the choice of no goroutine.
const letTimePass = -1

// A choice is what a strategy decides on.
type choice struct {
	n       int    // which decision, from 1
	enabled []*gor // in the order of their numbers; at least one
	current int    // which of them went on last, -1: it cannot go on
	tick    bool   // time may pass
}

// fallback is what goes on if nobody says otherwise.
func (c *choice) fallback() int { return max(c.current, 0) }

// A deviation is a decision that is not the fallback.
type deviation struct {
	n      int
	number int // of the goroutine; 0: time passes
}

func (c *choice) deviation(i int) deviation {
	if i == letTimePass {
		return deviation{c.n, 0}
	}
	return deviation{c.n, c.enabled[i].number}
}

func (d deviation) String() string {
	if d.number == 0 {
		return strconv.Itoa(d.n) + ":t"
	}
	return fmt.Sprintf("%d:%d", d.n, d.number)
}

func parseDeviation(s string) (d deviation, err error) {
	n, number, _ := strings.Cut(s, ":")
	if d.n, err = strconv.Atoi(n); err == nil && number != "t" {
		d.number, err = strconv.Atoi(number)
	}
	return d, err
}

// A strategy decides, for one schedule.
type strategy interface {
	// pick returns an index of c.enabled, or letTimePass if c.tick.
	pick(c *choice) int
}

// random goes on with any goroutine, or with the current one with a given
// probability.
type random struct {
	*rand.Rand
	stay float64 // how often the current one goes on without asking
	tick float64 // how often time passes
}

func (r *random) pick(c *choice) int {
	if c.current >= 0 && r.stay > 0 && r.Float64() < r.stay {
		return c.current
	}
	if c.tick && r.Float64() < r.tick {
		return letTimePass
	}
	return r.IntN(len(c.enabled))
}

// pct gives every goroutine a priority by chance, goes on with the greatest, and
// at few decisions, drawn before, takes the current one's away. A fault that
// takes d orderings among k decisions of n goroutines is found with a
// probability of at least 1/(n k^(d-1)).
type pct struct {
	*rand.Rand
	changes  []int           // at these decisions
	ticks    []int           // time passes at these
	priority map[int]float64 // by number
}

// depth is how many orderings pct looks for.
const depth = 3

// newPCT expects about steps decisions.
func newPCT(r *rand.Rand, steps int) *pct {
	p := &pct{Rand: r, priority: make(map[int]float64)}
	for range depth - 1 {
		p.changes = append(p.changes, 1+r.IntN(steps))
	}
	for range r.IntN(4) {
		p.ticks = append(p.ticks, 1+r.IntN(steps))
	}
	return p
}

func (p *pct) pick(c *choice) int {
	if c.tick && slices.Contains(p.ticks, c.n) {
		return letTimePass
	}
	if c.current >= 0 && slices.Contains(p.changes, c.n) {
		p.priority[c.enabled[c.current].number] = -float64(c.n)
	}
	best := 0
	for i, g := range c.enabled {
		if _, ok := p.priority[g.number]; !ok {
			p.priority[g.number] = p.Float64()
		}
		if p.priority[g.number] > p.priority[c.enabled[best].number] {
			best = i
		}
	}
	return best
}

// replay makes the deviations that it is given, where they can be made.
type replay map[int]deviation

func newReplay(all []deviation) replay {
	r := make(replay)
	for _, d := range all {
		r[d.n] = d
	}
	return r
}

func (r replay) pick(c *choice) int {
	d, ok := r[c.n]
	if !ok {
		return c.fallback()
	}
	if d.number == 0 && c.tick {
		return letTimePass
	}
	for i, g := range c.enabled {
		if g.number == d.number {
			return i
		}
	}
	return c.fallback()
}

// mixed returns a strategy drawn by r, and its name: plain random walks half of
// the time, for none dominates, and the others find what those do not.
func mixed(r *rand.Rand, steps int) (strategy, string) {
	tick := []float64{0, 1.0 / 64, 1.0 / 16, 1.0 / 4}[r.IntN(4)]
	switch r.IntN(8) {
	case 0, 1, 2, 3:
		return &random{Rand: r, tick: tick}, "random"
	case 4, 5:
		stay := []float64{0.5, 0.8, 0.95}[r.IntN(3)]
		return &random{Rand: r, tick: tick, stay: stay}, "sticky"
	default:
		return newPCT(r, steps), "pct"
	}
}
