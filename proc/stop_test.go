//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
)

func TestAStopNeverMasksTheStatus(t *testing.T) {
	for _, want := range []int{0, 7} {
		result, _, err := cancelled(t, bash(fmt.Sprintf("trap 'exit %d' TERM; bash -c 'echo ready; exec sleep 600' & wait", want)))
		assert.Equal(t, want, result.Code)
		assert.False(t, result.Killed)
		assert.Equal(t, errUser, result.Cause)
		assert.ErrorIs(t, err, errUser)
		assert.ErrorIs(t, err, context.Canceled)
		var ended *ExitError
		require.ErrorAs(t, err, &ended)
		assert.Equal(t, want, ended.Result.Code)
		var exit *exec.ExitError
		assert.Equal(t, want != 0, errors.As(err, &exit))
		assert.EqualError(t, err, fmt.Sprintf("step: exit status %d, stopped: cancelled by the user", want))
	}
}

func TestACommandThatIgnoresTERMIsKilled(t *testing.T) {
	c := bash("trap '' TERM; sleep 600 & echo ready; wait")
	c.Grace = 50 * time.Millisecond
	result, _, err := cancelled(t, c)
	assert.Equal(t, syscall.SIGKILL, result.Signal)
	assert.Equal(t, 137, result.Status())
	assert.True(t, result.Killed)
	assert.ErrorIs(t, err, errUser)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
}

func TestAGrandchildThatIgnoresTERMIsKilledAlthoughTheCommandHasEnded(t *testing.T) {
	for _, want := range []int{0, 7} {
		c := bash(fmt.Sprintf(`trap 'exit %d' TERM; (trap '' TERM; echo grandchild $BASHPID; sleep 600 & echo ready; wait) & wait`, want))
		hurryAfterTheLeader(t, &c)
		result, out, err := cancelled(t, c)
		assert.Equal(t, want, result.Code)
		assert.True(t, result.Killed)
		assert.ErrorIs(t, err, errUser)
		assert.Empty(t, clitest.Alive(t, clitest.Number(t, out.String(), "grandchild")))
	}
}

func hurryAfterTheLeader(t *testing.T, c *Command) {
	hurry, now := context.WithCancel(context.Background())
	c.Hurry = hurry
	c.Started = func(pid int) {
		gone := make(chan struct{})
		t.Cleanup(func() { <-gone })
		go func() {
			defer close(gone)
			defer now()
			_, err := async.Poll(context.Background(), async.Every(time.Millisecond),
				func(context.Context) (struct{}, bool, error) {
					return struct{}{}, syscall.Kill(pid, 0) != nil, nil
				}).Await(context.Background(), hang)
			assert.NoError(t, err)
		}()
	}
}

func TestTheWholeGroupGetsTERM(t *testing.T) {
	c := bash(`trap 'wait; exit 7' TERM; (trap 'echo told; exit' TERM; bash -c 'echo ready; exec sleep 600' & wait) & wait`)
	result, out, err := cancelled(t, c)
	assert.Equal(t, 7, result.Code)
	assert.False(t, result.Killed)
	assert.ErrorIs(t, err, errUser)
	assert.Contains(t, out.String(), "told\n")
}

func TestATimeoutStopsIt(t *testing.T) {
	var result Result
	var err error
	// A limit that passes before the command is started, as on a machine that is busy, keeps it from that.
	for limit := 50 * time.Millisecond; result.Pid == 0; limit *= 2 {
		result, err = Run(asynctest.Context(t), bash("sleep 600"), async.Timeout(limit))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	assert.Equal(t, syscall.SIGTERM, result.Signal)
	var late *async.TimeoutError
	require.ErrorAs(t, err, &late)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
}

func TestSignallingSeesTheCause(t *testing.T) {
	type call struct {
		sig   syscall.Signal
		cause error
	}
	var calls []call
	c := bash("trap '' TERM; sleep 600 & echo ready; wait")
	c.Grace = 20 * time.Millisecond
	c.Signalling = func(sig syscall.Signal, cause error) { calls = append(calls, call{sig, cause}) }
	_, _, err := cancelled(t, c)
	assert.ErrorIs(t, err, errUser)
	assert.Equal(t, []call{{syscall.SIGTERM, errUser}, {syscall.SIGKILL, errUser}}, calls)

	calls = nil
	c = bash("sleep 600 & exit 0")
	c.Linger = 20 * time.Millisecond
	c.Signalling = func(sig syscall.Signal, cause error) { calls = append(calls, call{sig, cause}) }
	_, err = Run(asynctest.Context(t), c)
	require.NoError(t, err)
	assert.Equal(t, []call{{syscall.SIGTERM, nil}}, calls)
}

func TestFunctionsThatPanicOrBlockKeepNothing(t *testing.T) {
	c := bash("exit 7")
	c.Started = func(int) { panic("of the user") }
	result, err := Run(asynctest.Context(t), c)
	assert.Equal(t, 7, result.Code)
	var panicked *async.PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Equal(t, "of the user", panicked.Value)
	assert.Equal(t, "Started of step", panicked.Task)

	release := make(chan struct{})
	c = bash("trap '' TERM; sleep 600 & echo ready; wait")
	c.Grace = 20 * time.Millisecond
	c.Signalling = func(syscall.Signal, error) { <-release }
	result, _, err = cancelled(t, c)
	close(release)
	assert.Equal(t, syscall.SIGKILL, result.Signal)
	assert.ErrorIs(t, err, errUser)
	assert.ErrorContains(t, err, "step: its function Signalling was called and has not returned")
}

func TestAWatchdogStopsIt(t *testing.T) {
	ctx := asynctest.Context(t)
	errSick := errors.New("it is sick")
	var told error
	c := bash("trap 'exit 7' TERM; bash -c 'echo ready; exec sleep 600' & wait")
	out := newSign()
	c.Stdout = out
	c.Signalling = func(_ syscall.Signal, cause error) { told = cause }
	result, err := async.Watch(ctx, func(ctx context.Context) (Result, error) {
		return Run(ctx, c)
	}, async.Every(time.Millisecond), func(context.Context) error {
		select {
		case <-out.ready:
			return errSick
		default:
			return nil
		}
	}).Await(ctx, 0)
	assert.Equal(t, 7, result.Code)
	var dog *async.WatchdogError
	require.ErrorAs(t, told, &dog)
	require.ErrorAs(t, err, &dog)
	assert.ErrorIs(t, err, errSick)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
}

// A stop that comes when the command has ended by itself changes nothing of how
// it has; but what it has left is not waited for any longer.
func TestAStopAfterTheEndIsNotTheCause(t *testing.T) {
	for _, want := range []int{0, 7} {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		// Would linger for a minute.
		p := &process{c: bash(fmt.Sprintf("sleep 600 & exit %d", want)).withDefaults(), result: Result{Code: -1}}
		p.c.Started = func(int) {
			leader := p.leader
			go func() {
				<-leader.Done()
				cancel(errUser)
			}()
		}
		_, err := async.Start(ctx, func(ctx context.Context) error {
			p.err = p.run(ctx)
			return p.err
		}).Join(ctx)
		assert.Nil(t, p.result.Cause)
		assert.True(t, p.result.Left)
		assert.Equal(t, want, p.result.Code)
		err = p.alone(err)
		if want == 0 {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, "step: exit status 7")
			assert.NotErrorIs(t, err, errUser)
		}
	}
}

func TestHurryEndsTheLingering(t *testing.T) {
	c := bash("sleep 600 & exit 0") // has a minute
	hurryAfterTheLeader(t, &c)
	result, err := Run(asynctest.Context(t), c)
	require.NoError(t, err)
	assert.True(t, result.Left)
}

func TestHurryEndsTheGrace(t *testing.T) {
	hurry, now := context.WithCancel(context.Background())
	c := bash("trap '' TERM; sleep 600 & echo ready; wait") // has a minute
	c.Hurry = hurry
	c.Signalling = func(sig syscall.Signal, _ error) {
		if sig == syscall.SIGTERM {
			now()
		}
	}
	result, _, err := cancelled(t, c)
	assert.Equal(t, syscall.SIGKILL, result.Signal)
	assert.ErrorIs(t, err, errUser)
}

// Nor is the output waited for that somebody outside the group holds open.
func TestHurryEndsTheWaitForTheOutput(t *testing.T) {
	hurry, now := context.WithCancel(context.Background())
	out := newSign()
	c := bash(outside + "echo ready") // would be waited for for a minute
	c.Hurry, c.Stdout, c.Stderr = hurry, out, out
	go func() {
		<-out.ready
		now()
	}()
	result, err := Run(asynctest.Context(t), c)
	pid := clitest.Number(t, out.String(), "daemon")
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	require.NoError(t, err)
	assert.True(t, result.Held)
}

// A stop that comes while the command is being started waits for that, and then
// ends it.
func TestAStopThatComesWithTheStartIsNotLost(t *testing.T) {
	for range 20 {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		c := Command{Name: "step", Args: []string{"sleep", "600"}}
		go cancel(errUser)
		result, err := Run(ctx, c)
		assert.ErrorIs(t, err, errUser)
		assert.True(t, result.Pid == 0 || result.Signal == syscall.SIGTERM)
	}
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	result, err := Run(ctx, Command{Args: []string{"sleep", "600"}, Started: func(int) { cancel(errUser) }})
	assert.ErrorIs(t, err, errUser)
	assert.Equal(t, syscall.SIGTERM, result.Signal)
}

// Nobody stops a command by Hurry alone.
func TestHurryStopsNothing(t *testing.T) {
	hurry, now := context.WithCancel(context.Background())
	now()
	c := bash("sleep 0.05; exit 7")
	c.Hurry = hurry
	result, err := Run(asynctest.Context(t), c)
	assert.Equal(t, 7, result.Code)
	assert.NoError(t, result.Cause)
	assert.EqualError(t, err, "step: exit status 7")
}
