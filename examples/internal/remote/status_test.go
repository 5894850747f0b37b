//go:build unix

package remote

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/cli"
)

func TestStatus(t *testing.T) {
	const failed = 250
	seven := &cli.ExitError{Code: 7}
	signal := &cli.SignalError{Signal: os.Interrupt}
	late := &async.TimeoutError{}
	stopped := func(cause error) error { return &StoppedError{cause, seven} }
	for name, c := range map[string]struct {
		err     error
		unknown bool
		want    int
	}{
		"it exited":                       {seven, false, 7},
		"it exited, nobody knows how":     {seven, true, failed},
		"a signal":                        {stopped(signal), false, 130},
		"a signal, nobody knows how":      {stopped(signal), true, failed},
		"a signal while it was stopped":   {errors.Join(stopped(errUser), signal), false, 130},
		"a limit":                         {stopped(late), false, 124},
		"a watchdog whose check was late": {stopped(&async.WatchdogError{Err: late}), false, failed},
		"a limit of something else":       {fmt.Errorf("connect: %w", late), false, failed},
		"nobody reads":                    {stopped(fmt.Errorf("output: %w", syscall.EPIPE)), false, 141},
		"nothing can be written":          {stopped(syscall.ENOSPC), false, failed},
		"cancelled":                       {stopped(errUser), false, failed},
		"something else":                  {errors.New("refused"), false, failed},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Status(c.err, c.unknown, failed)) })
	}
}
