package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

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
		text += ", stopped: " + e.Result.Cause.Error()
	}
	return text
}

// Outcome says how the command has ended, in words.
func (r Result) Outcome() string {
	switch {
	case r.State == nil:
		return "cannot be killed"
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

// ErrStuck is the Err of an OutputError about a writer that has not returned.
var ErrStuck = errors.New("the writer has not returned")

// Error names the stream.
func (e *OutputError) Error() string { return fmt.Sprintf("%s is lost: %v", e.Stream, e.Err) }

// Unwrap returns the error of the writer.
func (e *OutputError) Unwrap() error { return e.Err }
