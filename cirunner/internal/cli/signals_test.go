//go:build unix

package cli_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/cirunner/internal/cli"
	"github.com/ambit-go/ambit/cirunner/internal/clitest"
)

// start starts a program whose stdin is open until the test ends.
func start(t *testing.T, name string) *clitest.Process {
	var stdin io.Closer
	p := clitest.Start(t, func(cmd *exec.Cmd) {
		w, err := cmd.StdinPipe()
		require.NoError(t, err)
		stdin = w
	}, name)
	t.Cleanup(func() { _ = stdin.Close() })
	return p
}

func TestFirstSignalIsTheCauseAndTheExitStatus(t *testing.T) {
	for _, test := range []struct {
		signal os.Signal
		name   string
		status int
	}{
		{os.Interrupt, "interrupt", 130},
		{syscall.SIGTERM, "terminated", 143},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := start(t, "waiter")
			p.WaitFor("ready")
			p.Signal(test.signal)
			assert.Equal(t, test.status, p.Wait())
			assert.Equal(t, "ready\ncause: stopped by signal: "+test.name+"\n", p.Stdout())
			assert.Equal(t, "program: stopped by signal: "+test.name+"\n", p.Stderr(), "it was not killed, it has ended")
		})
	}
}

func TestSecondSignalEndsTheProcessAtOnce(t *testing.T) {
	p := start(t, "stubborn")
	p.WaitFor("ready")
	p.Signal(os.Interrupt)
	p.WaitFor("stopping")
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, 128+int(syscall.SIGTERM), p.Wait())
	assert.Empty(t, p.Stderr(), "it had no time to say why")
}

func TestOnSignalHearsEachSignalUntilItFails(t *testing.T) {
	p := start(t, "counter")
	p.WaitFor("ready")
	p.Signal(syscall.SIGUSR1)
	p.WaitFor("1: user defined signal 1")
	p.Signal(syscall.SIGUSR2)
	p.WaitFor("2: user defined signal 2")
	p.Signal(syscall.SIGUSR1)
	p.WaitFor("3: user defined signal 1")
	assert.Equal(t, cli.StatusFailed, p.Wait())
	assert.Equal(t, "program: that was enough\n", p.Stderr())
}

func TestSignalsThatNobodyAskedForHaveTheirUsualEffect(t *testing.T) {
	p := start(t, "counter")
	p.WaitFor("ready")
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, 143, p.Wait())
	assert.Empty(t, p.Stderr())
}

func TestLookingForSignalsKeepsNoScopeAndEndsWithIt(t *testing.T) {
	p := start(t, "over")
	p.WaitFor("over: <nil>")
	p.Signal(syscall.SIGTERM)
	assert.Equal(t, 143, p.Wait())
	assert.Empty(t, p.Stderr())
}

type notFromHere struct{}

func (notFromHere) String() string { return "odd" }
func (notFromHere) Signal()        {}

func TestSignalErrorOfAnotherSystem(t *testing.T) {
	err := &cli.SignalError{Signal: notFromHere{}}
	assert.Equal(t, 128, err.ExitStatus())
	assert.EqualError(t, err, "stopped by signal: odd")
}

func TestSignalAloneLeavesOutTheRest(t *testing.T) {
	sig, other := &cli.SignalError{Signal: os.Interrupt}, errors.New("closed")
	assert.Same(t, sig, cli.SignalAlone(errors.Join(other, fmt.Errorf("stopped: %w", sig))))
	assert.Same(t, other, cli.SignalAlone(other))
	assert.NoError(t, cli.SignalAlone(nil))
}
