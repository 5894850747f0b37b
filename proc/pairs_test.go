//go:build unix

package proc

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
)

// This file tests Run together with the functions and options of package async.

// ready returns a script that runs until it is told to stop, and the output that
// tells when it does.
func ready(script string) (Command, *sign) {
	c, out := bash(script+"sleep 600 & echo ready; wait"), newSign()
	c.Stdout = out
	return c, out
}

// A command that is killed when it is told to stop is no failure of a daemon; the
// same end, unasked, is.
func TestAKilledDaemonIsNoFailureIfItWasTold(t *testing.T) {
	told := func(c Command, out *sign) error {
		return async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				_, err := Run(ctx, c)
				assert.ErrorIs(t, err, async.ErrDismissed)
				var exit *exec.ExitError
				assert.ErrorAs(t, err, &exit)
				return err
			}, async.Daemon())
			<-out.ready
			return nil
		})
	}
	assert.NoError(t, told(ready("")), "ended by TERM")
	assert.NoError(t, told(ready("trap 'exit 7' TERM; ")), "exit status 7")
	c, out := ready("trap '' TERM; ")
	c.Grace = 20 * time.Millisecond
	assert.NoError(t, told(c, out), "killed")

	for _, signal := range []string{"KILL", "TERM"} {
		err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				_, err := Run(ctx, bash("kill -"+signal+" $$; wait"))
				return err
			}, async.Daemon())
			<-ctx.Done()
			return nil
		})
		assert.ErrorContains(t, err, "step: ended by SIG"+signal)
	}
}

// A command that ends well when it is told to stop has nothing to add to why.
func TestACommandThatExitsWithZeroWhenToldIsNoFailureOfItsScope(t *testing.T) {
	c, out := ready("trap 'exit 0' TERM; ")
	err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { _, err := Run(ctx, c); return err })
		<-out.ready
		return errUser
	})
	assert.Equal(t, []error{errUser}, err.(*async.ScopeError).Errors)

	c, out = ready("trap 'exit 7' TERM; ")
	err = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { _, err := Run(ctx, c); return err })
		<-out.ready
		return errUser
	})
	var e *async.ScopeError
	require.ErrorAs(t, err, &e)
	assert.Len(t, e.Errors, 2)
	assert.ErrorContains(t, err, "exit status 7")
}

// The n-th run is a command of its own. None overlaps the one before it, nor what
// that has left.
func TestRestartRunsItAgain(t *testing.T) {
	dir := t.TempDir()
	alone, count := filepath.Join(dir, "alone"), filepath.Join(dir, "count")
	c := bash("mkdir " + alone + ` || exit 9
		(trap '' TERM; sleep 0.05; rmdir ` + alone + `) &
		echo >>` + count + `; [ $(wc -l <` + count + `) -ge 3 ] && exit 0; exit 7`)
	var pids []int
	c.Started = func(pid int) { pids = append(pids, pid) }
	var hooks atomic.Int64
	result, err := Run(asynctest.Context(t), c, async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond)}),
		async.OnAbort(func(context.Context, error) error { hooks.Add(1); return nil }))
	require.NoError(t, err)
	assert.Len(t, pids, 3)
	assert.Equal(t, pids[2], result.Pid)
	assert.Equal(t, 0, result.Code)
	assert.Zero(t, hooks.Load())
}

func TestRestartGivesUpWithTheLastFailure(t *testing.T) {
	result, err := Run(asynctest.Context(t), bash("exit 7"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond), Attempts: 3}))
	var given *async.RestartError
	require.ErrorAs(t, err, &given)
	var exit *ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 7, result.Code)

	_, err = Run(asynctest.Context(t), Command{Args: []string{"/no/such/program"}}, async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond), Attempts: 2}))
	require.ErrorAs(t, err, &given)
	assert.ErrorIs(t, err, syscall.ENOENT)
}

// No reader or writer is called by two runs at once.
func TestRestartDoesNotReadBesideTheRunBefore(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	reads := filepath.Join(t.TempDir(), "reads")
	var runs atomic.Int64
	c := bash("until [ -e " + reads + " ]; do sleep 0.01; done; exit 7")
	c.Stdin = readerFunc(func(p []byte) (int, error) {
		assert.NoError(t, os.Mkdir(reads, 0o700), "only one reads")
		return r.Read(p)
	})
	c.Started = func(int) { runs.Add(1) }
	result, err := Run(asynctest.Context(t), c, async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond), Attempts: 3}))
	assert.EqualValues(t, 1, runs.Load())
	assert.ErrorIs(t, err, ErrStuck)
	assert.ErrorAs(t, err, new(*InputError))
	assert.Zero(t, result.Pid)

	release, returned := make(chan struct{}), make(chan struct{})
	written := filepath.Join(t.TempDir(), "written")
	c = bash("echo; until [ -e " + written + " ]; do sleep 0.01; done; exit 7")
	c.GiveUp, c.Linger = 50*time.Millisecond, -1
	c.Stdout = writerFunc(func(p []byte) (int, error) {
		assert.NoError(t, os.Mkdir(written, 0o700), "only one writes")
		defer close(returned)
		<-release
		return len(p), nil
	})
	_, err = Run(asynctest.Context(t), c, async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond), Attempts: 3}))
	assert.ErrorIs(t, err, ErrStuck)
	close(release)
	<-returned
}

func TestAStopEndsRestarting(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	var runs atomic.Int64
	c, out := ready("trap 'exit 7' TERM; ")
	c.Started = func(int) {
		if runs.Add(1) == 1 {
			go func() { <-out.ready; cancel(errUser) }()
		}
	}
	result, err := Run(ctx, c, async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond)}))
	assert.EqualValues(t, 1, runs.Load())
	assert.Equal(t, 7, result.Code)
	assert.ErrorIs(t, err, errUser)
	assert.ErrorAs(t, err, new(*ExitError))
}

// A loser is ended when the race is decided, and joined by the scope.
func TestALoserOfARaceIsEnded(t *testing.T) {
	c, out := ready("trap 'exit 7' TERM; ")
	var lost Result
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		won, err := async.Race(ctx, func(ctx context.Context) (int, error) {
			result, err := Run(ctx, c)
			lost = result
			return result.Code, err
		}, func(ctx context.Context) (int, error) {
			<-out.ready
			result, err := Run(ctx, bash("exit 0"))
			return result.Code, err
		}).Await(ctx, 0)
		assert.Zero(t, won)
		return err
	}))
	assert.Equal(t, 7, lost.Code)
	assert.Error(t, lost.Cause)
	assert.Empty(t, clitest.InGroup(t, lost.Pid))
}

// In a Shield it runs although its scope is cancelled, for as long as the Shield
// lasts.
func TestAShieldProtectsACommand(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	cancel(errUser)
	require.NoError(t, async.Shield(ctx, hang, func(ctx context.Context) error {
		_, err := Run(ctx, bash("exit 0"))
		return err
	}))
	var result Result
	for limit := 50 * time.Millisecond; result.Pid == 0; limit *= 2 { // else the time was up before the command was started
		err := async.Shield(ctx, limit, func(ctx context.Context) (err error) {
			result, err = Run(ctx, bash("trap 'exit 7' TERM; sleep 600 & wait"))
			return err
		})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, errUser)
	}
	assert.Error(t, result.Cause)
}

// WithoutCancel says what it says: the scope waits for the command and does not
// stop it.
func TestWithoutCancelIsNotStopped(t *testing.T) {
	var result Result
	err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		started := make(chan struct{})
		c := bash("sleep 0.05; exit 0")
		c.Started = func(int) { close(started) }
		async.Go(ctx, func(ctx context.Context) (err error) {
			result, err = Run(context.WithoutCancel(ctx), c)
			return err
		})
		<-started
		return errUser
	})
	assert.Equal(t, errUser, err)
	assert.Zero(t, result.Code)
	assert.NoError(t, result.Cause)
	assert.NotZero(t, result.Pid)
}

// A scope with DetachAfter does not wait for a long grace; the command is stopped
// all the same.
func TestDetachAfterDoesNotWaitForTheGrace(t *testing.T) {
	hurry, now := context.WithCancel(context.Background())
	ctx := asynctest.Context(t)
	c, out := ready("trap '' TERM; ")
	c.Hurry = hurry
	ended := make(chan Result, 1)
	err := async.Scope(ctx, func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error {
			result, _ := Run(ctx, c)
			ended <- result
			return nil
		}, async.Name("the command"))
		<-out.ready
		return errUser
	}, async.DetachAfter(10*time.Millisecond))
	var left *async.StragglerError
	require.ErrorAs(t, err, &left)
	now()
	result := <-ended
	assert.Equal(t, syscall.SIGKILL, result.Signal)
	assert.Equal(t, errUser, result.Cause)
}

// A group's Stop is what ends its commands.
func TestTheStopOfAGroupIsTheCause(t *testing.T) {
	ctx := asynctest.Context(t)
	g := async.NewGroup(ctx)
	c, out := ready("trap 'exit 7' TERM; ")
	var result Result
	require.NoError(t, g.Go(func(ctx context.Context) (err error) {
		result, err = Run(ctx, c)
		return err
	}))
	<-out.ready
	err := g.Stop(ctx, errUser)
	assert.Equal(t, errUser, result.Cause)
	assert.Equal(t, 7, result.Code)
	assert.ErrorContains(t, err, "exit status 7")
	_, err = Run(g.Context(), bash("exit 0"))
	assert.ErrorIs(t, err, async.ErrScopeEnded)
}

// Shutdown cancels commands and does not cut off what they say at the end.
func TestShutdownHearsTheLastWords(t *testing.T) {
	ctx, check := asynctest.Root(context.Background())
	c, out := ready("trap 'echo last words; exit 7' TERM; ")
	ended := make(chan struct{})
	var result Result
	async.Detach(ctx, "detached", func(ctx context.Context) (err error) {
		defer close(ended)
		result, err = Run(ctx, c)
		return nil
	})
	<-out.ready
	now, cancel := context.WithCancel(ctx)
	cancel()
	_ = async.Shutdown(now)
	<-ended
	assert.Equal(t, 7, result.Code)
	assert.Error(t, result.Cause)
	assert.Contains(t, out.String(), "last words\n")
	assert.NoError(t, check())
}

// A pool is asked for one goroutine, and a Limit for one place, whatever a command
// needs besides.
func TestOneGoroutineOfAPoolIsEnough(t *testing.T) {
	pool := &onePlace{free: make(chan struct{}, 1)}
	err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		out, errs := newSign(), newSign()
		c := bash("cat; echo err >&2")
		c.Stdin, c.Stdout, c.Stderr = readerFunc(newEnd("in\n")), out, errs
		_, err := Run(ctx, c)
		assert.Equal(t, "in\n", out.String())
		assert.Equal(t, "err\n", errs.String())
		return err
	}, async.On(pool), async.Limit(1))
	assert.NoError(t, err)

	refused := errors.New("refused")
	result, err := Run(asynctest.Context(t), bash("exit 0"), async.On(refusing{refused}))
	assert.ErrorIs(t, err, refused)
	assert.Equal(t, Result{Code: -1}, result)
}

type onePlace struct{ free chan struct{} }

func (p *onePlace) Execute(task func()) error {
	p.free <- struct{}{}
	go func() {
		defer func() { <-p.free }()
		task()
	}()
	return nil
}

type refusing struct{ err error }

func (r refusing) Execute(func()) error { return r.err }

// newEnd returns a Read that gives text, and then the end.
func newEnd(text string) func([]byte) (int, error) {
	left := []byte(text)
	return func(p []byte) (int, error) {
		if len(left) == 0 {
			return 0, io.EOF
		}
		n := copy(p, left)
		left = left[n:]
		return n, nil
	}
}

// A command that waits for its place and is cancelled is never started.
func TestACommandThatIsCancelledInTheQueueIsNotStarted(t *testing.T) {
	out := newSign()
	c, first := ready("trap 'exit 0' TERM; ")
	err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { _, err := Run(ctx, c); return err })
		<-first.ready
		queued := bash("echo never")
		queued.Stdout = out
		async.Go(ctx, func(ctx context.Context) error {
			result, err := Run(ctx, queued)
			assert.Zero(t, result.Pid)
			return err
		})
		return errUser
	}, async.Limit(1))
	assert.ErrorIs(t, err, errUser)
	assert.Empty(t, out.String())
}

// Observers see how it went; its owner is told first and alone.
func TestObserversSeeHowItEnded(t *testing.T) {
	var mu sync.Mutex
	var seen []error
	err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		_, _ = Run(ctx, bash("exit 7"))
		_, _ = Run(ctx, bash("exit 0"))
		return nil
	}, async.Observe(async.ObserverFunc(func(e async.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Task == "step" && e.Kind == async.EventEnd {
			seen = append(seen, e.Err)
		}
	})))
	require.NoError(t, err, "the caller of Run was told")
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, seen, 2)
	assert.ErrorAs(t, seen[0], new(*ExitError))
	assert.NoError(t, seen[1])
}

// An abort hook runs beside the stop, and its failure is told.
func TestAnAbortHookRunsBesideTheStop(t *testing.T) {
	errHook := errors.New("of the hook")
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	c, out := ready("trap 'exit 7' TERM; ")
	go func() { <-out.ready; cancel(errUser) }()
	var cause error
	result, err := Run(ctx, c, async.OnAbort(func(_ context.Context, why error) error {
		cause = why
		return errHook
	}), async.Name("other"))
	assert.Equal(t, 7, result.Code)
	assert.Equal(t, errUser, cause)
	assert.ErrorIs(t, err, errHook)
	assert.ErrorIs(t, err, errUser)
	assert.ErrorAs(t, err, new(*ExitError))
}

// An Await that expires stops the command, and with a Grace hears how it ended.
func TestAnAwaitThatExpiresStopsIt(t *testing.T) {
	ctx := asynctest.Context(t)
	c, out := ready("trap 'exit 7' TERM; ")
	command := async.Execute(ctx, func(ctx context.Context) (Result, error) {
		return Run(ctx, c)
	}, async.Grace(hang))
	<-out.ready
	result, err := command.Await(ctx, time.Millisecond)
	var late *async.TimeoutError
	require.ErrorAs(t, err, &late)
	require.ErrorAs(t, result.Cause, &late)
}

// The end by itself and the cancellation come at about the same time. Whichever was
// first, what is told agrees.
func TestAStopAtTheTimeOfTheEnd(t *testing.T) {
	stopped := 0
	for i := range 100 {
		ctx, cancel := context.WithCancelCause(asynctest.Context(t))
		c := Command{Name: "step", Args: []string{"true"}, Stdout: newSign()}
		c.Started = func(int) {
			go func() {
				time.Sleep(time.Duration(i) * 20 * time.Microsecond)
				cancel(errUser)
			}()
		}
		result, err := Run(ctx, c)
		assert.Equal(t, result.Cause != nil, err != nil)
		assert.False(t, result.Killed)
		assert.True(t, slices.Contains([]int{0, 128 + int(syscall.SIGTERM)}, result.Status()), result.Status())
		if err != nil {
			stopped++
			assert.Equal(t, errUser, result.Cause)
			assert.ErrorIs(t, err, errUser)
			assert.ErrorIs(t, err, context.Canceled)
		}
		cancel(nil)
	}
	t.Log(stopped, "of 100 were stopped")
}

// Run needs no scope.
func TestRunNeedsNoScope(t *testing.T) {
	result, err := Run(context.Background(), bash("exit 7"))
	assert.Equal(t, 7, result.Code)
	assert.EqualError(t, err, "step: exit status 7")
}

func TestOutputMayBeHuge(t *testing.T) {
	const size = 64 << 20
	var n int
	c := bash("head -c 67108864 /dev/zero")
	c.Stdout = writerFunc(func(p []byte) (int, error) { n += len(p); return len(p), nil })
	_, err := Run(asynctest.Context(t), c)
	require.NoError(t, err)
	assert.Equal(t, size, n)
}

func TestAWriterThatTakesLessStopsIt(t *testing.T) {
	c := bash("trap 'exit 7' TERM; while echo y; do :; done")
	c.Stdout = writerFunc(func(p []byte) (int, error) { return len(p) - 1, nil })
	result, err := Run(asynctest.Context(t), c)
	assert.Equal(t, 7, result.Code)
	assert.ErrorContains(t, err, "short write")
}
