package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// A Result is how a command has ended.
type Result struct {
	Pid    int            // 0 if it was not started
	Code   int            // its exit status; -1 if it has none
	Signal syscall.Signal // what has ended it, else 0
	Cause  error          // why it was stopped; nil if it has ended by itself

	// State tells the times and the memory used; nil if the command was not
	// started or has not ended.
	State *os.ProcessState

	// Killed reports that KILL was sent to the group.
	Killed bool

	// Left reports that the command has ended by itself and has left processes
	// in its group, which were ended.
	Left bool

	// Held reports that a process outside the group kept the output open when
	// the group had ended. Output of that process since is lost.
	Held bool

	// Survived reports that something of the group was still there GiveUp
	// after KILL: a process that the system cannot end now.
	Survived bool
}

// Status returns the exit status as shells give it: the command's own, or 128
// and the number of the signal that has ended it. It is -1 if the command has
// not ended or was not started.
func (r Result) Status() int {
	if r.Signal != 0 {
		return 128 + int(r.Signal)
	}
	return r.Code
}

// Notes returns what is worth telling about a run beside its outcome, a sentence
// each.
func (r Result) Notes() []string {
	var notes []string
	for _, n := range []struct {
		holds bool
		text  string
	}{
		{r.Left, "it left processes behind, which were ended"},
		{r.Killed, "some of its processes had to be killed"},
		{r.Held, "a process that has left its group keeps its output open"},
		{r.Survived, "not all of its processes have ended on KILL"},
	} {
		if n.holds {
			notes = append(notes, n.text)
		}
	}
	return notes
}

// ended writes how the process has ended.
func (r *Result) ended(state *os.ProcessState) {
	r.State, r.Code = state, state.ExitCode()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.Signal = ws.Signal()
	}
}

// An ExitError is how a command has ended that was stopped or has failed. It
// matches the *exec.ExitError of a command with an exit status other than 0, and
// if it was stopped also the cause and what the context says.
type ExitError struct {
	Name   string
	Result Result

	stop error // of the context, nil if it has ended by itself
}

// Error tells how the command has ended and, if it was stopped, why.
func (e *ExitError) Error() string {
	text := e.Name + ": " + e.Result.Outcome()
	if e.Result.Cause != nil {
		why := e.Result.Cause.Error()
		if !strings.HasPrefix(why, "stopped ") { // by signal, say
			why = "stopped: " + why
		}
		text += ", " + why
	}
	return text
}

// Outcome says how the command has ended, in words.
func (r Result) Outcome() string {
	switch {
	case r.Pid == 0:
		return "was not started"
	case r.State == nil && r.Survived:
		return "cannot be killed"
	case r.State == nil:
		return "exit status unknown"
	case r.Signal != 0:
		return "ended by " + SignalName(r.Signal)
	case r.Survived:
		return fmt.Sprintf("exit status %d, but some of its processes cannot be killed", r.Code)
	}
	return fmt.Sprintf("exit status %d", r.Code)
}

// Unwrap returns the *exec.ExitError, if there is one, and why it was stopped.
func (e *ExitError) Unwrap() []error {
	var errs []error
	if state := e.Result.State; state != nil && !state.Success() {
		errs = append(errs, &exec.ExitError{ProcessState: state})
	}
	if e.Result.Cause != nil {
		errs = append(errs, e.stop, e.Result.Cause)
	}
	return errs
}

// An OutputError is about output of a command that was lost because of the
// writer that was to take it.
type OutputError struct {
	Stream string // "stdout", "stderr" or "output"
	Err    error  // of the writer, or ErrStuck
}

// An InputError is about input of a command that was lost because the reader that
// was to give it has failed. The command was stopped for it, unless it had ended.
type InputError struct {
	Err error // of the reader
}

// Error says that the input is lost.
func (e *InputError) Error() string { return fmt.Sprintf("stdin is lost: %v", e.Err) }

// Unwrap returns the error of the reader.
func (e *InputError) Unwrap() error { return e.Err }

// ErrStuck is the Err of an [OutputError] about a writer that has not returned from
// Write. With [async.Restart] it is also that of a run that could not be started
// because a reader or writer has not returned since the run before.
var ErrStuck = errors.New("a call of Read or Write has not returned")

// Error names the stream.
func (e *OutputError) Error() string { return fmt.Sprintf("%s is lost: %v", e.Stream, e.Err) }

// Unwrap returns the error of the writer.
func (e *OutputError) Unwrap() error { return e.Err }
