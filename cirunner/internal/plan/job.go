// Package plan decides which jobs of a pipeline may run. It is a state machine
// and nothing else: what happened goes in, what changed comes out. It knows no
// clock, no process and no goroutine, so that every order of events can be
// tried.
//
// A Plan is not safe for use by several goroutines.
package plan

import (
	"fmt"

	"github.com/ambit-go/ambit/cirunner/internal/pipeline"
)

// A State is how far a job has come.
type State int

const (
	// Waiting is the first state: it is not known yet whether the job is to
	// run. It is left when all that it waits for has ended.
	Waiting State = iota
	// Delayed means that the job is to run, but not yet. It is left by Due, or
	// when the pipeline stops.
	Delayed
	// Locked means that the job is to run, and that another job of its group runs. It is
	// left when that has ended, or when the pipeline stops. If it would never be left the job fails.
	Locked
	// Ready means that the job is to run now, for the first time or once
	// more. It is left by Take, or when the pipeline stops.
	Ready
	// Running is left when the job reports its outcome, by Ended.
	Running
	// Succeeded, and each state that follows, is final.
	Succeeded
	// Failed means that the last attempt failed.
	Failed
	// Warned means that the job failed, and is allowed to.
	Warned
	// Skipped means that the job was not to run after what had happened before.
	Skipped
	// Manual means that the job runs only when asked for, and nobody has.
	Manual
	// Blocked means that the job waits for one that is Manual, and that holds up
	// what follows because it may not fail; or for another that is Blocked.
	Blocked
	// Canceled means that the pipeline was stopped before the job could end by
	// itself.
	Canceled
)

var stateNames = [...]string{"waiting", "delayed", "locked", "ready", "running", "success", "failed", "warning", "skipped", "manual", "blocked", "canceled"}

// String returns the word that reports use.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return stateNames[s]
}

// Final reports whether the state is never left again.
func (s State) Final() bool { return s >= Succeeded }

// A Cause is why a job failed, in the words of retry:when.
type Cause = pipeline.Failure

// The causes beside those that retry:when knows.
const (
	None    Cause = ""         // it has not failed
	Stopped Cause = "canceled" // by a person, or because of another job; never retried
)

// An Outcome is how an attempt ended.
type Outcome struct {
	Cause    Cause
	ExitCode int    // of the script, where Cause is ScriptFailure
	Text     string // what a person wants to read
}

// OK reports whether the attempt succeeded.
func (o Outcome) OK() bool { return o.Cause == None }

// A Job is what a Plan has to know of a job.
type Job struct {
	Name  string
	Stage int // 0 is the first

	// Needs are the jobs it waits for if HasNeeds is set; there may be none of
	// them, and then it starts at once. Otherwise it waits for all jobs of the
	// stages before its own.
	Needs    []int
	HasNeeds bool

	// Group is shared by jobs of which one at a time is Ready or Running; empty for
	// none.
	Group string

	// Parent is one more than the place of the job that starts the child pipeline that the
	// job is in; 0 for none. Stages are those of its own pipeline.
	Parent int

	// Depend says that whoever waits for the job waits for the pipeline that it starts.
	Depend bool

	When         pipeline.When
	Asked        bool // a manual job that is to run
	AllowFailure pipeline.AllowFailure
	Retry        pipeline.Retry
}

// allows reports whether the pipeline goes on after such an end.
func (j *Job) allows(o Outcome) bool {
	if o.Cause != pipeline.ScriptFailure {
		return j.AllowFailure.Allows(-1)
	}
	return j.AllowFailure.Allows(o.ExitCode)
}
