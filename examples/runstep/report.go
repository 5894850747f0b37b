//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/proc"
)

// Exit statuses beside those of cli, as env(1) and timeout(1) have them.
const (
	statusCannot        = 125
	statusNotExecutable = 126
	statusMissing       = 127
)

// A report is how a step has ended, for programs.
type report struct {
	Name    string   `json:"name"`
	Pid     int      `json:"pid,omitempty"`    // also of the group
	Code    *int     `json:"code"`             // null if it has none
	Signal  string   `json:"signal,omitempty"` // that has ended it
	Reason  string   `json:"reason,omitempty"` // why it was stopped: timeout, signal or output
	Cause   string   `json:"cause,omitempty"`  // the same in words
	Error   string   `json:"error,omitempty"`  // all that runstep has to complain about
	Notes   []string `json:"notes,omitempty"`
	Seconds float64  `json:"seconds"`
	Status  int      `json:"status"` // that runstep exits with
}

func newReport(name string, result proc.Result, err error, took time.Duration) *report {
	r := &report{
		Name:    name,
		Pid:     result.Pid,
		Notes:   result.Notes(),
		Seconds: took.Seconds(),
		Status:  exitStatus(result, err),
	}
	if result.Code >= 0 {
		r.Code = &result.Code
	}
	if result.Signal != 0 {
		r.Signal = proc.SignalName(result.Signal)
	}
	if result.Cause != nil {
		r.Reason, r.Cause = reason(result.Cause), result.Cause.Error()
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// write writes the report to a file, if one is named.
func (r *report) write(file string) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o666)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// reason names the kind of a cause.
func reason(cause error) string {
	switch {
	case errors.As(cause, new(*async.TimeoutError)):
		return "timeout"
	case errors.As(cause, new(*cli.SignalError)):
		return "signal"
	case errors.As(cause, new(*proc.OutputError)):
		return "output"
	}
	return "other"
}

// because says why a signal is sent.
func because(cause error) string {
	if cause == nil {
		return "it has left processes behind"
	}
	return cause.Error()
}

// exitStatus is what runstep exits with. The step's own status goes before
// everything: that it was stopped is told, and does not mask it.
func exitStatus(result proc.Result, err error) int {
	switch status := result.Status(); {
	case err == nil || status > 0:
		return status
	case result.Pid == 0:
		return cannotStart(err)
	case status < 0:
		return statusCannot // it cannot even be killed
	}
	return stopped(err)
}

// stopped is the status of a step that was stopped and has none to show for it.
func stopped(err error) int {
	status, _ := cli.StopStatus(err)
	return status
}

// cannotStart is the status of a step that never ran.
func cannotStart(err error) int {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return statusMissing
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		return statusNotExecutable
	case errors.As(err, new(*async.TimeoutError)), errors.As(err, new(*cli.SignalError)):
		return stopped(err)
	}
	return statusCannot
}
