//go:build unix

package foreground

import (
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"syscall"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/proc"
)

// Exit statuses beside those of cli, as env(1) and timeout(1) have them.
const (
	StatusCannot        = 125 // it could not be run, or cannot be killed
	StatusNotExecutable = 126
	StatusMissing       = 127
)

// ExitStatus returns the exit status for a program that has run a command in
// place of its caller, and has got r and err from proc.Run. The command's own status
// goes before everything: that it was stopped is told, and does not mask it. For
// one that has none to show, or 0, it is that of the cause: see cli.StopStatus.
func ExitStatus(r proc.Result, err error) int {
	switch status := r.Status(); {
	case err == nil || status > 0:
		return status
	case r.Pid == 0:
		return cannotStart(err)
	case status < 0:
		return StatusCannot // it cannot even be killed
	}
	status, _ := cli.StopStatus(err)
	return status
}

// cannotStart is the status of a command that never ran.
func cannotStart(err error) int {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return StatusMissing
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		return StatusNotExecutable
	case errors.As(err, new(*async.TimeoutError)), errors.As(err, new(*cli.SignalError)):
		status, _ := cli.StopStatus(err)
		return status
	}
	return StatusCannot
}

// Piped hides that w is a file, so that a command writes to a pipe rather than
// to the file: what it leaves running would else hold that open, and with it
// whoever reads it.
func Piped(w io.Writer) io.Writer { return struct{ io.Writer }{w} }
