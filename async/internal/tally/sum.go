package tally

import "slices"

// A Body is how the handler or body of a scope has ended. Its failure was
// recorded by Fail.
type Body struct {
	Echo bool // it only repeated that the scope was cancelled
}

// A Stop says why a scope was cancelled; the zero value, that it was not.
type Stop struct {
	Cause error
}

// A Sum is how a scope has gone.
type Sum struct {
	// Cause is why the scope was cancelled, if that is to be told: something was
	// kept from being done or failed, and it is none of Errs.
	Cause error
	// Errs are the failures in the order in which they came, the one that
	// decided first, and errors of hooks behind them. A panic that is to be
	// raised is none of them.
	Errs    []error
	Dropped int   // how many more there were
	Panic   error // is to be raised; nil for none
	Goexit  bool  // something called runtime.Goexit
}

// Well reports that nothing is to be told.
func (s *Sum) Well() bool {
	return s.Cause == nil && s.Panic == nil && len(s.Errs) == 0 && s.Dropped == 0
}

// Echo reports that there is nothing to tell but that the scope was cancelled.
func (s *Sum) Echo() bool {
	return s.Cause != nil && s.Panic == nil && len(s.Errs) == 0 && s.Dropped == 0 && !s.Goexit
}

// Sum sums up how the scope has gone so far. It changes nothing. last, if it is
// not nil, is one more error, told behind all others.
func (t *Tally) Sum(body Body, stop Stop, last error) (s Sum) {
	if t == nil {
		t = new(Tally)
	}
	hurt := body.Echo || t.echoed || t.skipped || last != nil || t.panicky != nil || t.goexit ||
		len(t.errs)+len(t.hooks)+t.dropped > 0
	if stop.Cause != nil && hurt && !t.Has(stop.Cause) {
		s.Cause = stop.Cause
	}
	s.Panic, s.Goexit, s.Dropped = t.panicky, t.goexit, t.dropped
	s.Errs = decidingFirst(t.errs, stop.Cause)
	s.Errs = append(s.Errs, t.hooks...)
	if last != nil {
		s.Errs = append(s.Errs, last)
	}
	if n := len(s.Errs) - Max; n > 0 { // the last is not the one to leave out
		s.Errs, s.Dropped = slices.Delete(s.Errs, Max-1, len(s.Errs)-1), s.Dropped+n
	}
	return s
}

// decidingFirst returns a copy of errs in which the one that cancelled the
// scope comes first: of two that fail at the same time, the second may be
// recorded before the first has cancelled.
func decidingFirst(errs []error, cause error) []error {
	if len(errs) == 0 {
		return nil
	}
	errs = slices.Clone(errs)
	if cause == nil {
		return errs
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return Same(err, cause) }); i > 0 {
		first := errs[i]
		errs = slices.Insert(slices.Delete(errs, i, i+1), 0, first)
	}
	return errs
}
