//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/examples/internal/foreground"
	"github.com/ambit-go/ambit/proc"
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
		Status:  foreground.ExitStatus(result, err),
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

// checkReport fails if a report cannot be written to file: better before the step
// than after an hour. A file that is there is emptied, so that nobody takes an
// old report for that of this step. Pipes and devices are not touched.
func checkReport(file string) error {
	info, err := os.Stat(file)
	if file == "" || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	f, err := os.Create(file)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return &cli.ExitError{Code: foreground.StatusCannot, Err: fmt.Errorf("report: %w", err)}
	}
	return nil
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
