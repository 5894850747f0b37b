package pipeline

import "slices"

// Retry says when a job that failed is run again.
type Retry struct {
	// Max is how often at most: 0 to 2.
	Max int

	// When are the failures that are worth it; empty means every failure.
	When []Failure

	// ExitCodes are exit codes of the script that are worth it, besides When.
	ExitCodes []int
}

// A Failure is a kind of failure that retry:when may name.
type Failure string

const (
	AnyFailure     Failure = "always"
	ScriptFailure  Failure = "script_failure"           // the script ended with another status than 0
	SystemFailure  Failure = "runner_system_failure"    // the runner could not run the job; a service failed
	TimeoutFailure Failure = "job_execution_timeout"    // the job's timeout
	StuckFailure   Failure = "stuck_or_timeout_failure" // the watchdog found it stuck, or the timeout
	UnknownFailure Failure = "unknown_failure"
	ChildFailure   Failure = "downstream_pipeline_creation_failed" // never worth another run
)

// Again reports whether a failure is worth another run of the job. code is the
// exit code of the script for a ScriptFailure. It does not count the runs.
func (r Retry) Again(failure Failure, code int) bool {
	if r.Max == 0 || failure == ChildFailure { // the same files would be read again
		return false
	}
	if len(r.When) == 0 && len(r.ExitCodes) == 0 {
		return true
	}
	if slices.Contains(r.When, AnyFailure) || slices.Contains(r.When, failure) {
		return true
	}
	if failure == TimeoutFailure && slices.Contains(r.When, StuckFailure) {
		return true
	}
	return failure == ScriptFailure && slices.Contains(r.ExitCodes, code)
}

// AllowFailure says which failures of a job do not fail the pipeline.
type AllowFailure struct {
	// All says that any failure is allowed.
	All bool

	// ExitCodes are the exit codes of the script that are allowed.
	ExitCodes []int
}

// Allows reports whether a failure is allowed. code is the exit code of the
// script, or negative where it has none: it was killed, or did not start.
func (a AllowFailure) Allows(code int) bool {
	return a.All || slices.Contains(a.ExitCodes, code)
}
