//go:build unix

package proc

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
)

// The command has a child that would tell of a TERM, for which there is time, and
// ends it itself, by another signal.
const orderly = `
	trap 'sleep 0.1; kill -WINCH $!; wait $!; exit 7' TERM
	bash -c 'trap "echo TERM" TERM; trap "echo WINCH; exit" WINCH; sleep 600 & echo ready; while :; do wait; done' &
	wait`

func TestMixedTellsTheCommandAlone(t *testing.T) {
	c := bash(orderly)
	c.Mixed, c.Linger = true, -1 // the child of the child is left
	result, out, err := cancelled(t, c)
	assert.Equal(t, 7, result.Code)
	assert.ErrorIs(t, err, errUser)
	assert.Equal(t, "ready\nWINCH\n", out.String())
}

func TestMixedKillsAll(t *testing.T) {
	c := bash("trap '' TERM; sleep 600 & echo ready; wait")
	c.Mixed, c.Grace = true, 50*time.Millisecond
	result, _, err := cancelled(t, c) // which looks for what is left
	assert.Equal(t, syscall.SIGKILL, result.Signal)
	assert.True(t, result.Killed)
	assert.ErrorIs(t, err, errUser)
}

// A process that the command leaves when it has heard TERM has the time that such processes
// have, and not the whole grace: nobody has told it to stop.
func TestMixedKillsWhatIsLeftWhenTheCommandHasEnded(t *testing.T) {
	c := bash(`trap 'exit 7' TERM; bash -c 'trap "echo TERM" TERM; echo child $$; sleep 600 & echo ready; wait' & wait`)
	c.Mixed, c.Linger = true, 50*time.Millisecond // the grace is a minute
	result, out, err := cancelled(t, c)
	assert.Equal(t, 7, result.Code)
	assert.True(t, result.Killed)
	assert.False(t, result.Left, "it was stopped")
	assert.ErrorIs(t, err, errUser)
	assert.Empty(t, clitest.Alive(t, clitest.Number(t, out.String(), "child")))
	assert.NotContains(t, out.String(), "TERM")
}

func TestMixedLetsWhatIsLeftComeToItsEnd(t *testing.T) {
	c := bash(`trap 'kill -WINCH $!; exit 7' TERM
		(trap 'echo told; sleep 0.1; kill $!; echo done; exit' WINCH; sleep 600 & echo ready; wait) & wait`)
	c.Mixed = true
	result, out, err := cancelled(t, c)
	assert.Equal(t, 7, result.Code)
	assert.ErrorIs(t, err, errUser)
	assert.False(t, result.Killed)
	assert.Equal(t, "ready\ntold\ndone\n", out.String())
}

func TestMixedKillsWhatAnEndedCommandHasLeft(t *testing.T) {
	var sent []syscall.Signal
	c := bash("sleep 600 & exit 0")
	c.Mixed, c.Linger = true, 20*time.Millisecond
	c.Signalling = func(sig syscall.Signal, cause error) {
		assert.NoError(t, cause)
		sent = append(sent, sig)
	}
	result, err := Run(asynctest.Context(t), c)
	require.NoError(t, err)
	assert.True(t, result.Left)
	assert.Equal(t, []syscall.Signal{syscall.SIGKILL}, sent)
	assert.Empty(t, clitest.InGroup(t, result.Pid))
}

// Stopped processes hear nothing before they go on.
func TestAStoppedGroupIsEnded(t *testing.T) {
	for name, mixed := range map[string]bool{"all": false, "mixed": true} {
		for answers, script := range map[string]string{
			"answers TERM": "trap 'exit 7' TERM; sleep 600 & echo ready; wait",
			"ignores TERM": "trap '' TERM; sleep 600 & echo ready; wait",
		} {
			t.Run(name+", "+answers, func(t *testing.T) {
				c := bash(script)
				c.Mixed, c.Linger = mixed, -1
				if answers == "ignores TERM" {
					c.Grace = 50 * time.Millisecond
				}
				var pid int
				c.Started = func(id int) { pid = id }
				c.Signalling = func(sig syscall.Signal, _ error) {
					// All stand still when the signal comes.
					assert.NoError(t, syscall.Kill(-pid, syscall.SIGSTOP))
				}
				result, _, err := cancelled(t, c)
				assert.ErrorIs(t, err, errUser)
				if answers == "ignores TERM" {
					assert.Equal(t, syscall.SIGKILL, result.Signal)
				} else {
					assert.Equal(t, 7, result.Code)
				}
			})
		}
	}
}
