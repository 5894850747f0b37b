//go:build unix

package foreground

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
	"github.com/ambit-go/ambit/proc"
)

func TestExitStatus(t *testing.T) {
	late := &async.TimeoutError{}
	interrupt := &cli.SignalError{Signal: os.Interrupt}
	lost := &proc.OutputError{Err: syscall.EPIPE}
	full := &proc.OutputError{Err: syscall.ENOSPC}
	ended := func(code int, sig syscall.Signal, cause error) proc.Result {
		return proc.Result{Pid: 1, Code: code, Signal: sig, Cause: cause}
	}
	none := proc.Result{Code: -1}
	for _, test := range []struct {
		name   string
		result proc.Result
		err    error
		want   int
	}{
		{"done", ended(0, 0, nil), nil, 0},
		{"failed", ended(3, 0, nil), errors.New("exit status 3"), 3},
		{"crashed", ended(-1, syscall.SIGSEGV, nil), errors.New("SIGSEGV"), 139},
		{"7 on a timeout", ended(7, 0, late), late, 7},
		{"7 on a signal", ended(7, 0, interrupt), interrupt, 7},
		{"0 on a timeout", ended(0, 0, late), late, 124},
		{"0 on a signal", ended(0, 0, interrupt), interrupt, 130},
		{"0 as nobody reads", ended(0, 0, lost), lost, 141},
		{"0, and nobody has read the end", ended(0, 0, nil), lost, 141},
		{"0, and the output is lost", ended(0, 0, nil), full, 1},
		{"killed", ended(-1, syscall.SIGKILL, interrupt), interrupt, 137},
		{"cannot be killed", ended(-1, 0, interrupt), interrupt, 125},
		{"never started: a signal", none, errors.Join(context.Canceled, interrupt), 130},
		{"never started: a timeout", none, late, 124},
		{"not there", none, &exec.Error{Name: "x", Err: exec.ErrNotFound}, 127},
		{"not there, by path", none, &os.PathError{Op: "fork/exec", Err: syscall.ENOENT}, 127},
		{"not executable", none, &os.PathError{Op: "fork/exec", Err: syscall.EACCES}, 126},
		{"not a program", none, &os.PathError{Op: "fork/exec", Err: syscall.ENOEXEC}, 126},
		{"no process to be had", none, &os.PathError{Op: "fork/exec", Err: syscall.EAGAIN}, 125},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, ExitStatus(test.result, test.err))
		})
	}
}
