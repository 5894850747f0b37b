//go:build unix

package proc_test

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/proc"
	"github.com/ambit-go/ambit/service"
)

// A server process as a service: that it is ended when it is told to stop is no
// failure, also by KILL; the same end, unasked, is.
func TestAProcessAsAServiceMayBeKilledWhenItIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		signal syscall.Signal
		grace  time.Duration
	}{
		"TERM": {"echo ready; exec sleep 600", syscall.SIGTERM, time.Hour},
		"KILL": {"trap '' TERM; echo ready; while :; do sleep 0.01; done", syscall.SIGKILL, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(stop func(cancel func(), pid int)) (proc.Result, error) {
				ctx, cancel := context.WithCancel(asynctest.Context(t))
				defer cancel()
				var result proc.Result
				var pid int
				err := service.Run(ctx, []service.Service{{
					Name: "server",
					Run: func(ctx context.Context) (err error) {
						result, err = proc.Run(ctx, proc.Command{
							Args:    []string{"sh", "-c", test.script},
							Grace:   test.grace,
							Linger:  -1,
							Hurry:   service.Hurry(ctx),
							Started: func(id int) { pid = id },
							Stdout:  ready(func() { stop(cancel, pid) }),
						})
						return err
					},
				}})
				return result, err
			}
			told, err := run(func(cancel func(), _ int) { cancel() })
			assert.NoError(t, err)
			assert.Equal(t, test.signal, told.Signal)
			assert.Error(t, told.Cause)

			unasked, err := run(func(_ func(), pid int) { _ = syscall.Kill(pid, test.signal) })
			var exit *exec.ExitError
			assert.ErrorAs(t, err, &exit)
			assert.Equal(t, test.signal, unasked.Signal)
			assert.NoError(t, unasked.Cause)
		})
	}
}

// ready is a writer that calls f when it is written to.
type ready func()

func (f ready) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}
