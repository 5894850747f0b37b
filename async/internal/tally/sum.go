package tally

import "slices"

// This file sums up how a scope has gone.

// A Sum is how a scope has gone.
type Sum struct {
	// Cause is why the scope was cancelled, if that is to be told: something was
	// kept from being done or failed, and it is none of Errs.
	Cause error
	// Said is what the handler has said as it stopped; see [HandlerEnd].
	Said error
	// Texts are what else was said beside cancellations, in the order in which it came.
	Texts        []error
	TextsDropped int  // how many more there were
	CutOff       bool // the end of the scope has cut off work, which the Texts name
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

// An End is what the user of a Tally knows of the end of the scope.
type End struct {
	Handler HandlerEnd
	Cause   error // why the scope was cancelled; nil: it was not
	Led     bool  // the Cause is that a leader of the scope has ended, which is no failure
	Last    error // one more error, told behind all others; nil: none
}

// Sum sums up how the scope has gone so far. It changes nothing.
//
// The failure that cancelled the scope comes first: of two that fail at the same
// time, the other may have been recorded before.
func (t *Tally) Sum(e End) (s Sum) {
	handler, cause, last := e.Handler, e.Cause, e.Last
	if t == nil {
		t = new(Tally)
	}
	if t.told {
		cause = nil
	}
	unfinished := handler.Echo || t.unfinished || last != nil || t.failed()
	excused := e.Led && !(handler.Echo && handler.Owes)
	if cause != nil && unfinished && !t.has(cause) && !excused {
		s.Cause = cause
	}
	s.Said, s.Texts, s.TextsDropped, s.CutOff = handler.Said, t.texts, t.textsDropped, t.cutOff
	s.Panic, s.Goexit, s.Dropped = t.panicky, t.goexit, t.dropped
	s.Errs = append(s.Errs, t.errs...)
	for _, err := range t.hooks {
		if !t.has(err) { // a hook that hands on what it was told
			s.Errs = append(s.Errs, err)
		}
	}
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
func (s *Sum) Well() bool { return s.Cause == nil && s.noErrors() && !s.CutOff }

// HasTexts reports whether anything was said beside cancellations.
func (s *Sum) HasTexts() bool { return s.Said != nil || len(s.Texts) > 0 || s.TextsDropped > 0 }

// Echo reports that there is nothing to tell but that the scope was cancelled, and
// perhaps what was said beside that.
func (s *Sum) Echo() bool { return s.Cause != nil && s.noErrors() && !s.Goexit }

func (s *Sum) noErrors() bool { return s.Panic == nil && len(s.Errs) == 0 && s.Dropped == 0 }

// Only returns the failure if there is one and nothing else is to be told; else nil.
func (s *Sum) Only() error {
	if s.Cause == nil && s.Panic == nil && len(s.Errs) == 1 && s.Dropped == 0 && !s.HasTexts() {
		return s.Errs[0]
	}
	return nil
}
