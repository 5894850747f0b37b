package service

import (
	"context"
	"slices"

	"github.com/ambit-go/ambit/async"
)

// This file is the end of a program: what is left at the root is ended, and the process.

// end ends what is left, and the process.
func (p *program) end(err error) {
	p.note(err, nil)
	late := p.shutdown(err)
	p.sayRemarks()
	if c, ok := err.(*crash); ok {
		if late := joined(late); late != nil {
			p.say(late)
		}
		p.exit(c.ExitStatus())
		return
	}
	if err != nil {
		late = slices.Insert(late, 0, err)
	}
	err = joined(late)
	if err != nil {
		p.say(err)
	}
	p.mu.Lock()
	came := p.came
	p.mu.Unlock()
	p.exit(status(err, came))
}

// shutdown ends detached tasks, and then what a Run has given up. It returns what has gone
// wrong, but for stragglers that said has named already.
func (p *program) shutdown(said error) (errs []error) {
	p.stops()
	p.mu.Lock()
	begun := p.stopped
	p.mu.Unlock()
	ctx := p.hurry
	if p.grace != Forever {
		bounded, cancel := context.WithDeadline(ctx, begun.Add(p.delay).Add(p.grace))
		defer cancel()
		ctx = bounded
	}
	givenUp := p.insideGivenUp()
	if givenUp == nil {
		return unsaid(async.Shutdown(hurried{ctx, p.ctx}), said)
	}
	// Shutdown does not wait for what its caller is part of.
	errs = unsaid(async.Shutdown(hurried{ctx, givenUp}), said)
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return append(errs, unsaid(async.Shutdown(hurried{now, p.ctx}), &runError{slices.Concat(errs, []error{said})})...)
}

// insideGivenUp returns a context whose owner is part of what a Run has given up, nil if
// none has. A Run in a service of that is part of it, too, and may be about to give up its
// own services: so the context is that of the innermost.
func (p *program) insideGivenUp() (ctx context.Context) {
	p.mu.Lock()
	all, givenUp := slices.Concat(p.givenUp, p.sets), slices.Clone(p.givenUp)
	p.mu.Unlock()
	deepest := 0
	for _, s := range all {
		inside, around := s.inside(), s.around()
		given := slices.ContainsFunc(around, func(s *set) bool { return slices.Contains(givenUp, s) })
		if given && inside != nil && len(around) > deepest {
			ctx, deepest = inside, len(around)
		}
	}
	return ctx
}

// around returns s, and those in whose services it was called.
func (s *set) around() (sets []*set) {
	for sets = append(sets, s); s.parent != nil; sets = append(sets, s) {
		s = s.parent.set
	}
	return sets
}

// inside returns a context whose owner is part of s, nil if s has started nothing.
func (s *set) inside() context.Context {
	if len(s.members) == 0 || s.members[0].now().all == nil {
		return nil
	}
	return s.members[0].now().all.Context()
}

// unsaid returns err, if it is an error and does more than name tasks as left that said has
// named so.
func unsaid(err, said error) []error {
	if err == nil {
		return nil
	}
	if late, ok := err.(*async.StragglerError); ok && late.More == 0 {
		before := named(said, new(maxErrors))
		if !slices.ContainsFunc(late.Left, func(l async.Straggler) bool { return !slices.Contains(before, l.Task) }) {
			return nil
		}
	}
	return []error{err}
}

// named returns the tasks that err and what it wraps name as left.
func named(err error, more *int) (tasks []string) {
	defer func() { _ = recover() }() // of a user's Unwrap; tasks are what was found before
	if *more--; err == nil || *more < 0 {
		return nil
	}
	switch e := err.(type) {
	case *async.StragglerError:
		for _, l := range e.Left {
			tasks = append(tasks, l.Task)
		}
	case interface{ Unwrap() error }:
		return named(e.Unwrap(), more)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			tasks = append(tasks, named(err, more)...)
		}
	}
	return tasks
}
