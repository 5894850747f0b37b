package async

import (
	"context"
	"errors"
	"slices"
)

// This file decides how a scope or task ended, and what is made of several
// failures.

// A verdict is how a task or scope ended. It is handed around by pointer and
// written where it is needed in the end, because it ends every task: measured,
// by value it made stacks grow, which cost more than a task.
type verdict struct {
	err   error       // nil for success
	panic *PanicError // set if it ended in a panic; err is the same then
	echo  bool        // err says only that the task was cancelled

	goexit bool // it, or a task of it, called runtime.Goexit

	// cause is why the task was cancelled, if it was. own is then err without
	// that: what is left to tell a scope that was cancelled for it, too; nil if
	// that makes no difference.
	own, cause error

	// partial: the value holds err already, so whoever is given the value is
	// given no error beside it.
	partial bool
}

// asVerdict returns the verdict of an error of guard.
func asVerdict(err error) verdict {
	p, _ := err.(*PanicError)
	return verdict{err: err, panic: p}
}

// given returns the error for whoever is given the outcome.
func (v *verdict) given() error {
	if v.partial {
		return nil
	}
	return v.err
}

// toOwner returns what is to be recorded of v in an owner that sg, if it is not
// nil, has cancelled.
func (v *verdict) toOwner(sg *stopError) error {
	if v.own != nil && sg != nil && same(sg.cause, v.cause) {
		return v.own
	}
	return v.err
}

// mustRaise reports that v is too loud to be told as a timeout: only whoever
// is given it has heard of it.
func (v *verdict) mustRaise() bool { return v.panic != nil || v.goexit }

// verdict seals s and sums up how it ended. echo says that err, the body's
// own, only repeats the cancellation.
func (s *scope) verdict(err error, echo bool, v *verdict) {
	s.takeUnclaimed() // of promises that were rejected meanwhile
	if !s.sumEcho(err, echo, v) {
		s.sum(err, echo, nil, v)
	}
	s.seal()
}

// sumEcho is sum for a scope that nothing went wrong in but that it may have
// been cancelled; it reports false if there is more to it.
func (s *scope) sumEcho(err error, echo bool, v *verdict) bool {
	sg := s.t.stopped()
	s.mu.Lock()
	quiet, told := s.faults == nil, s.told != nil
	echoed := echo || s.echoed || s.skipped
	s.mu.Unlock()
	switch {
	case !quiet || echo && err != context.Canceled: // a handler's own words may say more
		return false
	case !echoed || sg == nil:
	case told:
		return false
	default:
		v.err, v.echo = sg.told(), true
	}
	if sg != nil {
		v.cause = sg.cause
	}
	return true
}

// sum sums up in v how s has gone so far; last, if it is not nil, is one more
// error.
func (s *scope) sum(err error, echo bool, last error, v *verdict) {
	sg := s.t.stopped()
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.faults
	if f == nil {
		f = new(faults)
	}
	hurt := echo || s.echoed || s.skipped || len(f.errs)+len(f.hooks) > 0 || f.panics != nil || last != nil
	outside := sg != nil && hurt && s.told == nil && !f.has(sg.cause) // cancelled from outside, which decided
	real := len(f.errs)+len(f.hooks)+f.dropped > 0 || last != nil
	own := slices.Clone(f.errs)
	if sg != nil && !outside { // of two at once, the one that decided comes first
		if i := slices.IndexFunc(own, func(e error) bool { return same(e, sg.cause) }); i > 0 {
			first := own[i]
			own = slices.Insert(slices.Delete(own, i, i+1), 0, first)
		}
	}
	said := false // the handler's own words say what stopped it
	if echo && outside && !same(err, sg.err) && !errors.Is(sg.cause, err) {
		said = errors.Is(err, sg.err) && errors.Is(err, sg.cause)
		own = slices.Insert(own, 0, err) // they are kept beside the cause
	}
	own = append(own, f.hooks...)
	if last != nil {
		own = append(own, last)
	}
	errs := own
	if outside && !said {
		errs = append([]error{sg.told()}, own...)
	}
	if p := f.panics; p != nil {
		*v = p.with(joined(s.t, without(errs, p), f.dropped))
		v.goexit = f.goexit
		if outside {
			v.cause = sg.cause
			v.own = p.with(joined(s.t, without(own, p), f.dropped)).err
		}
		return
	}
	*v = verdict{err: joined(s.t, errs, f.dropped), echo: !real && len(errs) > 0, goexit: f.goexit}
	if sg != nil {
		v.cause = sg.cause
	}
	if outside && real {
		v.own = joined(s.t, own, f.dropped)
	}
}

// with returns the verdict of a panic beside which rest went wrong, which may
// be nil.
func (e *PanicError) with(rest error) verdict {
	if rest == nil {
		return verdict{err: e, panic: e}
	}
	both := *e
	both.others = join(e.others, rest)
	return verdict{err: &both, panic: &both}
}

// leaf writes the verdict of a task that never had a inner scope to v.
func (v *verdict) leaf(t *task, err error, sg *stopError) {
	if err == nil {
		return
	}
	v.err, v.panic, v.goexit = err, asPanic(t.exit, err), t.exit == byGoexit
	if v.panic != nil || sg == nil {
		return
	}
	v.cause = sg.cause
	v.echo = !v.goexit && isEcho(err, sg)
	stop := sg.told()
	switch {
	case v.echo && (same(err, sg.err) || errors.Is(sg.cause, err)):
		v.err = stop
	case errors.Is(err, sg.err) && errors.Is(err, sg.cause):
		v.own = err // it says both already
	default:
		v.err, v.own = joined(t, []error{stop, err}, 0), err
	}
}

// joined makes one error of several: nil, the only one, or a ScopeError.
func joined(t *task, errs []error, dropped int) error {
	switch {
	case len(errs) == 0 && dropped == 0:
		return nil
	case len(errs) == 1 && dropped == 0:
		return errs[0]
	}
	if n := len(errs) - maxListed; n > 0 {
		errs, dropped = errs[:maxListed], dropped+n
	}
	return &ScopeError{Scope: t.name(), Errors: errs, Dropped: dropped}
}

func join(a, b error) error {
	if a == nil {
		return b
	}
	return errors.Join(a, b)
}

// without returns errs less those that say no more than p.
func without(errs []error, p *PanicError) []error {
	var rest []error
	for _, err := range errs {
		if q, ok := err.(*PanicError); !ok || q != p && (!q.sameAs(p) || q.others != nil) {
			rest = append(rest, err)
		}
	}
	return rest
}
