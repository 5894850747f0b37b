//go:build unix

package main

import (
	"errors"
	"fmt"
	"slices"
)

// A plan decides which job may run. Nothing here waits, runs or looks at a clock: facts go in by finish, the next
// job comes out of next. So it can be tested by itself.
type plan struct {
	jobs  []*job
	state map[string]state
}

type state string

const (
	waiting   state = "waiting"
	running   state = "running"
	succeeded state = "success"
	failed    state = "failed"
	canceled  state = "canceled"
	skipped   state = "skipped" // it needs a job that has not succeeded
)

func newPlan(jobs []*job) *plan {
	p := &plan{jobs, map[string]state{}}
	for _, j := range jobs {
		p.state[j.name] = waiting
	}
	return p
}

// next returns the first job that may run now, which then counts as running; nil if there is none.
func (p *plan) next() *job {
	for _, j := range p.jobs {
		ready := func(need string) bool { return p.state[need] == succeeded }
		if p.state[j.name] == waiting && !slices.ContainsFunc(j.needs, func(need string) bool { return !ready(need) }) {
			p.state[j.name] = running
			return j
		}
	}
	return nil
}

// finish takes down how a job has ended. If it has not succeeded, those that need it are skipped, or canceled with
// it, and those that need these.
func (p *plan) finish(name string, s state) {
	p.state[name] = s
	for _, j := range p.jobs { // what a job needs stands before it: one look is enough
		lost := func(need string) bool { return !slices.Contains([]state{waiting, running, succeeded}, p.state[need]) }
		switch {
		case p.state[j.name] != waiting || !slices.ContainsFunc(j.needs, lost):
		case s == canceled:
			p.state[j.name] = canceled
		default:
			p.state[j.name] = skipped
		}
	}
}

// stop cancels the jobs that have not begun.
func (p *plan) stop() {
	for name, s := range p.state {
		if s == waiting {
			p.state[name] = canceled
		}
	}
}

// outcome tells how it has all ended: an error if a job has not succeeded.
func (p *plan) outcome() error {
	var errs []error
	for _, j := range p.jobs {
		if s := p.state[j.name]; s != succeeded {
			errs = append(errs, fmt.Errorf("%s: %s", j.name, s))
		}
	}
	return errors.Join(errs...)
}
