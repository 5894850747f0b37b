//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Whatever the jobs need and however they end: none runs before its needs have succeeded, and in the end none waits.
func TestEachPlanComesToItsEnd(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		var jobs []*job
		for i := range 1 + r.IntN(8) {
			j := &job{name: fmt.Sprint(i)}
			for need := range i {
				if r.IntN(3) == 0 {
					j.needs = append(j.needs, fmt.Sprint(need))
				}
			}
			jobs = append(jobs, j)
		}
		p := newPlan(jobs)
		var busy []*job
		for {
			for j := p.next(); j != nil; j = p.next() {
				for _, need := range j.needs {
					assert.Equal(t, succeeded, p.state[need], "seed %d", seed)
				}
				busy = append(busy, j)
			}
			if len(busy) == 0 {
				break
			}
			i := r.IntN(len(busy))
			p.finish(busy[i].name, []state{succeeded, succeeded, failed}[r.IntN(3)])
			busy = append(busy[:i], busy[i+1:]...)
		}
		for _, j := range jobs {
			assert.NotContains(t, []state{waiting, running}, p.state[j.name], "seed %d", seed)
			for _, need := range j.needs {
				if p.state[need] != succeeded {
					assert.Equal(t, skipped, p.state[j.name], "seed %d", seed)
				}
			}
		}
	}
}
