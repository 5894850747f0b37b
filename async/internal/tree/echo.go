package tree

import (
	"slices"

	"github.com/ambit-go/ambit/async/internal/echo"
	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file is about why something was stopped, and about errors that repeat that: whether
// they do, and what they say besides. Package echo, which decides it, calls methods of
// users' errors, so no function here is called with a lock held, but those whose names end
// with Locked.

// IsEcho reports whether err says nothing but "I was told to stop", to a task
// that was stopped with stop.
func IsEcho(err error, stop *StopError) bool {
	if stop == nil || tally.Same(err, stop.Err) { // most often
		return stop != nil
	}
	return echo.Is(err, echo.Stop{Err: stop.Err, Cause: stop.Cause}, saying)
}

// Said returns err, of a task that was stopped with stop, if it says more than that; else
// nil.
func (stop *StopError) Said(err error) error {
	switch {
	case tally.Same(err, stop.Err): // most often
		return nil
	case Codec.Is(err, HasMemory):
		return err // who waits is told what came before the stop
	case echo.Bare(err, echo.Stop{Err: stop.Err, Cause: stop.Cause}, saying):
		return nil
	}
	return err
}

// texts returns what was said beside cancellations in a scope that was stopped with
// stop: by its body first, and how many more there were.
func texts(sum *tally.Sum, stop *StopError) (all []error, dropped int) {
	if sum.Said != nil {
		all, dropped = TextsIn(sum.Said, echo.Stop{Err: stop.Err, Cause: stop.Cause})
	}
	for _, text := range sum.Texts {
		if !slices.ContainsFunc(all, func(e error) bool { return tally.Same(e, text) }) {
			all = append(all, text)
		}
	}
	if n := len(all) - tally.Max; n > 0 {
		all, dropped = all[:tally.Max], dropped+n
	}
	return all, dropped + sum.TextsDropped
}

// TextsIn returns what err, which is an echo of stop, says beside that: the errors in
// it that are not bare, and how many more there were.
func TextsIn(err error, stop echo.Stop) (all []error, dropped int) {
	if list := Codec.ListIn(Bare(err)); list != nil {
		for _, err := range list.Errs {
			inner, more := TextsIn(err, stop)
			all, dropped = append(all, inner...), dropped+more
		}
		return append(all, list.Stopped...), dropped + list.DroppedStopped
	}
	// A daemon may say anything as it stops, so err may be no echo.
	if err == nil || echo.Bare(err, stop, saying) || !echo.Is(err, stop, saying) {
		return nil, 0
	}
	return []error{err}, 0
}

// beside returns what a task that was stopped with stop, and then returned err, gives
// to a waiter: an error that matches both. A nil err says nothing beside stop.
func (stop *StopError) beside(t *Task, err error) error {
	switch {
	case err == nil:
		return stop.AsError()
	// It matches both as it is, because the handler has wrapped the cause: another
	// layer would only be in the way.
	case matches(err, stop.Err) && matches(err, stop.Cause):
		return err
	default:
		return (&Listing{Scope: t.Name(), Cause: stop.Cause, Errs: []error{err}, Stop: stop.Err}).asError()
	}
}

// matches is errors.Is for errors of users.
func matches(err, target error) bool {
	return echo.Matches(err, target)
}

// saying returns what err says, if it is of ours.
func saying(err error) (says echo.Saying, ours bool) {
	if stop, stopped := err.(*StopError); stopped {
		return echo.Saying{Cause: stop.Cause}, true
	}
	return Codec.Saying(err)
}

// tallyLocked returns the tally of s, making it if need be.
func tallyLocked(s *Scope) *tally.Tally {
	if s.Tally == nil {
		s.Tally = &tally.Tally{Bare: Bare}
	}
	return s.Tally
}

// RecordSkipped records that something was not done because s was cancelled.
func RecordSkipped(s *Scope) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !s.Ended {
		tallyLocked(s).Record(&tally.Fact{Class: tally.Echo})
	}
}
