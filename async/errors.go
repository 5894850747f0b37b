package async

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// Errors that tell how work ended. Test for them with [errors.Is].
var (
	// ErrScopeEnded is the cause of every context whose scope or task has
	// ended, and the result of what was started too late.
	ErrScopeEnded = tree.ErrScopeEnded

	// ErrDismissed is the cause with which a scope stops its daemons once
	// the body and the ordinary tasks have ended, and with which a [Leader]
	// cancels its scope.
	ErrDismissed = tree.ErrDismissed

	// ErrScopeDone is the former name of ErrDismissed.
	//
	// Deprecated: Use [ErrDismissed].
	ErrScopeDone = ErrDismissed

	// ErrGoexit is the outcome of a task that called [runtime.Goexit], as
	// testing.T.FailNow does.
	ErrGoexit = tree.ErrGoexit

	// ErrAbandoned settles a promise that nobody resolved before its scope
	// ended.
	ErrAbandoned = tree.ErrAbandoned

	// ErrAwaitCycle is returned by a wait that could never end because the
	// awaited task waits, directly or not, for the waiter. The text of the
	// returned error holds the path.
	ErrAwaitCycle = tree.ErrAwaitCycle

	// ErrShutdown is the cause with which [Shutdown] stops what is left.
	ErrShutdown = tree.ErrShutdown
)

// A TimeoutError says that a time limit of this package has passed: that of
// an Await, or the Timeout of a task or scope. It matches
// [context.DeadlineExceeded]. Whose limit it was is a matter of identity:
// compare the pointer with [context.Cause], not the type.
type TimeoutError struct {
	Task   string        // the name of the task or scope
	Limit  time.Duration // the limit that was set
	Waited time.Duration // how long the waiter has waited

	ofAwait bool // it is the limit of an Await, perhaps of somebody else's
}

// Error names the task, the limit and, rounded, the time waited.
func (e *TimeoutError) Error() string {
	if e == nil {
		return nilText(e)
	}
	text := prefix(e.Task) + context.DeadlineExceeded.Error()
	wait := ""
	if e.ofAwait {
		wait = " of an Await"
	}
	if e.Limit <= 0 {
		return text + " (the limit" + wait + " had passed before)"
	}
	return fmt.Sprintf("%s (limit %v%s, waited %v)", text, e.Limit, wait, rounded(e.Waited))
}

// Is reports that a TimeoutError is a [context.DeadlineExceeded].
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout returns true; it is what net.Error asks.
func (e *TimeoutError) Timeout() bool { return true }

// notNil returns those of errs that are not nil.
func notNil(errs ...error) []error {
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// A WatchdogError is why a watchdog has aborted a task.
type WatchdogError struct {
	Task string
	Err  error // of the check, or that no beat came
}

// Error names the task and says what was wrong.
func (e *WatchdogError) Error() string {
	if e == nil {
		return nilText(e)
	}
	return prefix("watchdog of "+e.Task) + within(e.Task, e.Err)
}

// Unwrap returns what was wrong.
func (e *WatchdogError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// A Straggler is a task that still runs when it is asked which tasks are left. It
// was told to stop and has not gone, or nobody has told it.
type Straggler struct {
	Task  string
	State State
	Stack string // of its goroutine, "" if that was not found or has not run yet
}

// A StragglerError names the tasks that are left of a scope: they were waited for
// and still run. None of them is lost sight of. Until they have ended the scope
// waits for them or, if it has returned without them ([DetachAfter]), the root
// has them on record.
type StragglerError struct {
	Scope string
	Left  []Straggler // at most 32
	More  int         // how many more there are
	Cause error       // why they were told to stop; nil: nobody has told them

	// cutShort is the cause of the context that has cut a wait for a group short; nil:
	// this is no error of such a wait.
	cutShort error
}

// Error names the stragglers and shows their stacks.
func (e *StragglerError) Error() string {
	if e == nil {
		return nilText(e)
	}
	head := counted(len(e.Left)+e.More, "task") + " still running, not told to stop"
	if e.Cause != nil {
		head = counted(len(e.Left)+e.More, "task") +
			" still running after being told to stop: " + briefly(e.Scope, e.Cause)
	}
	texts := []string{head}
	for _, s := range e.Left {
		text := fmt.Sprintf("%s (%v)", s.Task, s.State)
		if s.Stack != "" {
			text += "\n" + strings.TrimSpace(s.Stack)
		}
		texts = append(texts, strings.ReplaceAll(indented(text), "\n", "\n\t"))
	}
	return prefix(e.Scope) + list(texts, e.More)
}

// Unwrap returns why the stragglers were told to stop, nil if nobody has.
func (e *StragglerError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Cause
}

// Errors of choosing. Test for them with [errors.Is].
var (
	// ErrDecided is the cause with which a task is cancelled when the choice
	// it takes part in has been made without it.
	ErrDecided = tree.ErrDecided

	// ErrNoTasks is the outcome of a choice among no tasks.
	ErrNoTasks = errors.New("async: no tasks to choose from")

	// ErrNoWinner is the outcome of Until if no task wins and none fails.
	ErrNoWinner = errors.New("async: no winner")

	// ErrNoQuorum is the outcome of Quorum if too few tasks can succeed.
	ErrNoQuorum = errors.New("async: no quorum")
)

// A cutOffError says that the end of a scope has dismissed a group in which tasks ran
// that did not come to their end.
type cutOffError struct {
	group     string
	dismissed bool     // the owner's end has cancelled the group
	tasks     []string // at most 32
	more      int      // how many more there were
}

// Error names the group and the tasks.
func (e *cutOffError) Error() string {
	if len(e.tasks) == 0 {
		return prefix(e.group) + "dismissed before everything was done: stop a group, or wait for it"
	}
	names := strings.Join(e.tasks, ", ")
	if e.more > 0 {
		names += fmt.Sprintf(" and %d more", e.more)
	}
	return prefix(e.group) + "dismissed, which has cut off " + names + ": stop a group, or wait for it"
}

// Unwrap returns ErrDismissed.
func (e *cutOffError) Unwrap() error { return ErrDismissed }

// An UnawaitedError is what a scope tells of the failure of a future that nobody was
// given by the end of the scope, because nobody awaited it: of which task it is. A
// task that was started with [Go] needs no Await, and its failure is told as it is;
// so is a panic, which is a [*PanicError]. Who awaits the future after that is given
// Err.
//
// [errors.Is] and [errors.As] reach Err. An error that several tasks have returned is
// listed once, so only the first of them is named.
type UnawaitedError struct {
	Task string // the name of the task
	Err  error  // its failure
}

// Error names the task and says that nobody awaited it, and then the failure.
func (e *UnawaitedError) Error() string {
	if e == nil {
		return nilText(e)
	}
	return prefix(e.Task) + "nobody awaited it: " + within(e.Task, e.Err)
}

// Unwrap returns the failure.
func (e *UnawaitedError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// A RejectedError is the outcome of a task that its executor refused to run. It
// is also the error of package scheduler, whose pool refused a worker: then
// Worker names that.
type RejectedError struct {
	Task   string // "" if what a worker had queued was rejected
	Worker string // "" if Task was not on a worker
	Err    error  // what the executor said, a *PanicError if it panicked, or the cause of the pool's end
}

// Error names the task or the worker and says why it was refused.
func (e *RejectedError) Error() string {
	if e == nil {
		return nilText(e)
	}
	if e.Worker != "" {
		return fmt.Sprintf("scheduler: %s: rejected by the pool: %v", e.Worker, e.Err)
	}
	return prefix(e.Task) + "rejected by its executor: " + within(e.Task, e.Err)
}

// Unwrap returns what the executor said.
func (e *RejectedError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// State is where a future's task stands.
type State uint8

// The states of a future.
const (
	StateQueued   State = iota // waits for a slot of a Limit
	StateRunning               // the handler, or what it started, runs or is about to
	StateAborting              // as StateRunning, and it has been told to stop
	StateDone                  // settled
)

// The former names of the states of a future.
//
// Deprecated: Use those that begin with State.
const (
	//go:fix inline
	Queued = StateQueued
	//go:fix inline
	Running = StateRunning
	//go:fix inline
	Aborting = StateAborting
	//go:fix inline
	Done = StateDone
)

// String returns queued, running, aborting or done.
func (s State) String() string {
	return [...]string{"queued", "running", "aborting", "done"}[s]
}
