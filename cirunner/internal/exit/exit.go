// Package exit has the errors that decide the exit status of the program, which
// package service asks them for.
package exit

import "fmt"

// The exit statuses of a run that no signal has ended.
const (
	OK     = 0 // every job that was to run has succeeded, or may fail
	Failed = 1 // a job has failed, or the run itself: what a status is if nobody says another
	Usage  = 2 // the arguments or the pipeline file are wrong
)

// An Error is an error with the status Usage: nothing was run.
type Error struct{ Err error }

// Error is that of Err.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// ExitStatus returns Usage.
func (e *Error) ExitStatus() int { return Usage }

// Usagef returns an error about the arguments of the program, with where to read
// about them.
func Usagef(format string, args ...any) error {
	return &Error{fmt.Errorf("%w; see cirunner -h", fmt.Errorf(format, args...))}
}
