package tally

import "slices"

// This file sums up how a scope has gone.

// A Sum is how a scope has gone.
type Sum struct {
	// Cause is why the scope was cancelled, if that is to be told: something was
	// kept from being done or failed, and it is none of Errs.
	Cause error
	// Words are what the body has said as it stopped, if the Cause is told.
	Words error
	// Errs are the failures in the order in which they came, the one that
	// decided first, and errors of hooks behind them. A panic that is to be
	// raised is none of them.
	Errs    []error
	Dropped int   // how many more there were
	Panic   error // is to be raised; nil for none
	Goexit  bool  // something called runtime.Goexit
}

// Listed returns a Sum of errs and of so many more. It keeps no more than Max, so
// that a million failures do not fill the memory.
func Listed(errs []error, dropped int) Sum {
	if n := len(errs) - Max; n > 0 {
		errs, dropped = errs[:Max], dropped+n
	}
	return Sum{Errs: errs, Dropped: dropped}
}

// Sum sums up how the scope has gone so far: its body has ended so, and it was
// cancelled for cause, nil if it was not. It changes nothing. last, if it is not
// nil, is one more error, told behind all others.
//
// The failure that cancelled the scope comes first: of two that fail at the same
// time, the other may have been recorded before.
func (t *Tally) Sum(body Body, cause, last error) (s Sum) {
	if t == nil {
		t = new(Tally)
	}
	if t.told {
		cause = nil
	}
	unfinished := body.Echo || t.unfinished || last != nil || t.failed()
	excused := t.same(cause, t.excused) && !(body.Echo && body.Missed)
	if cause != nil && unfinished && !t.has(cause) && !excused {
		s.Cause, s.Words = cause, body.Words
	}
	s.Panic, s.Goexit, s.Dropped = t.panicky, t.goexit, t.dropped
	s.Errs = append(append(s.Errs, t.errs...), t.hooks...)
	for i, err := range t.errs {
		if i > 0 && t.same(err, cause) {
			copy(s.Errs[1:], t.errs[:i])
			s.Errs[0] = err
		}
	}
	if last != nil {
		s.Errs = append(s.Errs, last)
	}
	if n := len(s.Errs) - Max; n > 0 { // the last is not the one to leave out
		s.Errs, s.Dropped = slices.Delete(s.Errs, Max-1, len(s.Errs)-1), s.Dropped+n
	}
	return s
}

// Well reports that nothing is to be told.
func (s *Sum) Well() bool { return s.Cause == nil && s.noErrors() }

// Echo reports that there is nothing to tell but that the scope was cancelled, and
// perhaps what the body said as it stopped.
func (s *Sum) Echo() bool { return s.Cause != nil && s.noErrors() && !s.Goexit }

func (s *Sum) noErrors() bool { return s.Panic == nil && len(s.Errs) == 0 && s.Dropped == 0 }

// Only returns the failure if there is one and nothing else is to be told; else nil.
func (s *Sum) Only() error {
	if s.Cause == nil && s.Panic == nil && len(s.Errs) == 1 && s.Dropped == 0 {
		return s.Errs[0]
	}
	return nil
}

// List returns Errs with the Words: before them in a list of errors, behind them in
// what is attached to a panic.
func (s *Sum) List() []error {
	switch {
	case s.Words == nil:
		return s.Errs
	case s.Panic != nil:
		return append(s.Errs, s.Words)
	default:
		return slices.Insert(s.Errs, 0, s.Words)
	}
}
