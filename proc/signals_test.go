//go:build unix

package proc

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
)

// sent has c note the signals that it is sent.
func sent(c *Command) *[]syscall.Signal {
	var signals []syscall.Signal
	c.Signalling = func(sig syscall.Signal, _ error) { signals = append(signals, sig) }
	return &signals
}

var intThenTerm = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}

func TestTheFirstSignalIsTheOneOfChoice(t *testing.T) {
	c := bash(`trap 'echo int; exit 7' INT; trap 'exit 8' TERM; echo ready; while :; do sleep 0.01; done`)
	c.Signals = intThenTerm
	signals := sent(&c)
	result, out, err := cancelled(t, c)
	assert.ErrorIs(t, err, errUser)
	assert.Equal(t, 7, result.Code)
	assert.Contains(t, out.String(), "int\n")
	assert.Equal(t, []syscall.Signal{syscall.SIGINT}, *signals)
}

func TestEachSignalIsFollowedByTheNextAndByKILL(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		c := bash(`trap '' INT; trap 'exit 8' TERM; echo ready; while :; do sleep 0.01; done`)
		c.Signals, c.Grace, c.Mixed = intThenTerm, 50*time.Millisecond, mixed
		// A slow machine may kill it before it has heard TERM; the order is the same.
		signals := sent(&c)
		result, _, err := cancelled(t, c)
		assert.ErrorIs(t, err, errUser)
		assert.Equal(t, intThenTerm, (*signals)[:2], "mixed %v", mixed)
		if !result.Killed {
			assert.Equal(t, 8, result.Code)
		}

		c = bash(`trap '' INT TERM; echo ready; while :; do sleep 0.01; done`)
		c.Signals, c.Grace, c.Mixed = intThenTerm, 20*time.Millisecond, mixed
		signals = sent(&c)
		result, _, err = cancelled(t, c)
		assert.ErrorIs(t, err, errUser)
		assert.True(t, result.Killed)
		assert.Equal(t, append(intThenTerm[:2:2], syscall.SIGKILL), *signals, "mixed %v", mixed)
	}
}

func TestWithoutAGraceOrWithoutPatienceNoFurtherSignalAsks(t *testing.T) {
	c := bash(`trap '' INT TERM; echo ready; while :; do sleep 0.01; done`)
	c.Signals = intThenTerm
	c.Grace = -1
	signals := sent(&c)
	_, _, err := cancelled(t, c)
	assert.ErrorIs(t, err, errUser)
	assert.Equal(t, []syscall.Signal{syscall.SIGKILL}, *signals)

	hurry, now := context.WithCancel(context.Background())
	now()
	c.Grace, c.Hurry = hang, hurry
	signals = sent(&c)
	_, _, err = cancelled(t, c)
	assert.ErrorIs(t, err, errUser)
	assert.Equal(t, []syscall.Signal{syscall.SIGINT, syscall.SIGKILL}, *signals)
}

func TestASignalThatDoesNotAskIsRefused(t *testing.T) {
	for _, sig := range []syscall.Signal{0, syscall.SIGKILL, syscall.SIGSTOP} {
		c := bash("exit 0")
		c.Signals = []syscall.Signal{syscall.SIGINT, sig}
		result, err := Run(asynctest.Context(t), c)
		require.Error(t, err)
		assert.Contains(t, err.Error(), SignalName(sig)+" is among Signals, and asks no command to end")
		assert.Zero(t, result.Pid)
	}
}
