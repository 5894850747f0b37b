//go:build unix

package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/examples/internal/clitest"
)

// hang bounds what must not hang. No test takes as long as that.
const hang = time.Minute

var errUser = errors.New("cancelled by the user")

// bash returns a command with a script and a lot of time. Scripts that are going
// to be stopped wait for a child that is there already: one that bash starts
// while it hears TERM does not hear it.
func bash(script string) Command {
	return Command{Name: "step", Args: []string{"bash", "-c", script}, Grace: hang, GiveUp: hang, Linger: hang}
}

// A sign is a writer that tells when a line "ready" has come.
type sign struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan struct{}
	once  sync.Once
}

func newSign() *sign { return &sign{ready: make(chan struct{})} }

func (s *sign) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if bytes.Contains(s.text.Bytes(), []byte("ready\n")) {
		s.once.Do(func() { close(s.ready) })
	}
	return len(p), nil
}

func (s *sign) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// pid reads the number behind a word of the output.
func (s *sign) pid(t *testing.T, word string) int {
	t.Helper()
	for line := range strings.Lines(s.String()) {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			pid, err := strconv.Atoi(strings.TrimSpace(rest))
			require.NoError(t, err)
			return pid
		}
	}
	t.Fatalf("no %q in %q", word, s.String())
	return 0
}

// cancelled runs a command, and cancels it when it has printed "ready".
func cancelled(t *testing.T, c Command) (Result, *sign, error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	out := newSign()
	go func() {
		<-out.ready
		cancel(errUser)
	}()
	if c.Stdout == nil {
		c.Stdout = out
	}
	result, err := Run(ctx, c)
	assert.Empty(t, clitest.InGroup(t, result.Pid), "left in the group")
	return result, out, err
}

func TestACommandThatEndsByItselfGivesItsStatus(t *testing.T) {
	for _, want := range []int{0, 1, 7, 255} {
		result, err := Run(asynctest.Context(t), bash(fmt.Sprintf("exit %d", want)))
		assert.Equal(t, want, result.Code)
		assert.Equal(t, want, result.Status())
		assert.Empty(t, result.Notes())
		if want == 0 {
			assert.NoError(t, err)
			continue
		}
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, want, exit.ExitCode())
		assert.EqualError(t, err, fmt.Sprintf("step: exit status %d", want))
	}
}

func TestACommandThatASignalEndsGivesTheSignal(t *testing.T) {
	result, err := Run(asynctest.Context(t), bash("kill -SEGV $$"))
	assert.Equal(t, syscall.SIGSEGV, result.Signal)
	assert.Equal(t, -1, result.Code)
	assert.Equal(t, 139, result.Status())
	assert.EqualError(t, err, "step: ended by SIGSEGV")
}

func TestAStopNeverMasksTheStatus(t *testing.T) {
	for _, want := range []int{0, 7} {
		result, _, err := cancelled(t, bash(fmt.Sprintf("trap 'exit %d' TERM; sleep 600 & echo ready; wait", want)))
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
		assert.Empty(t, clitest.Alive(t, out.pid(t, "grandchild")))
	}
}

// hurryAfterTheLeader ends the grace of c when the command itself has ended.
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
	c := bash(`trap 'wait; exit 7' TERM; (trap 'echo told; exit' TERM; sleep 600 & echo ready; wait) & wait`)
	result, out, err := cancelled(t, c)
	assert.Equal(t, 7, result.Code)
	assert.False(t, result.Killed)
	assert.ErrorIs(t, err, errUser)
	assert.Contains(t, out.String(), "told\n")
}

func TestABackgroundChildThatKeepsTheOutputOpenDoesNotHangIt(t *testing.T) {
	out := newSign()
	c := bash(`sleep 600 & echo child $!; exit 0`)
	c.Linger, c.Stdout = 50*time.Millisecond, out
	result, err := Run(asynctest.Context(t), c)
	require.NoError(t, err)
	assert.Equal(t, 0, result.Code)
	assert.True(t, result.Left)
	assert.Nil(t, result.Cause)
	assert.Len(t, result.Notes(), 1)
	assert.Empty(t, clitest.Alive(t, out.pid(t, "child")))
}

func TestAReaderOfTheLastOutputMayFinish(t *testing.T) {
	out := newSign()
	c := bash(`exec > >(while read -r line; do sleep 0.05; echo "[$line]"; done); echo one; echo two`)
	c.Stdout = out
	result, err := Run(asynctest.Context(t), c)
	require.NoError(t, err)
	assert.Equal(t, "[one]\n[two]\n", out.String())
	assert.False(t, result.Left)
}

// outside is a script that leaves a process outside its group, which keeps the
// output open.
const outside = `read -r pid < <(exec setsid bash -c 'echo $$; exec sleep 600 >&2'); echo daemon $pid; `

func TestSomebodyOutsideTheGroupThatKeepsTheOutputOpenDoesNotHangIt(t *testing.T) {
	out := newSign()
	c := bash(outside + "echo last")
	c.Linger, c.Stdout, c.Stderr = 50*time.Millisecond, out, out
	result, err := Run(asynctest.Context(t), c)
	pid := out.pid(t, "daemon")
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	require.NoError(t, err)
	assert.Equal(t, []string{"a process that has left its group keeps its output open"}, result.Notes())
	assert.Contains(t, out.String(), "last\n")
	assert.NotEmpty(t, clitest.Alive(t, pid), "it is not ours to kill")
}

func TestWhatIsInThePipeIsNotLostToASlowWriter(t *testing.T) {
	const linger = 20 * time.Millisecond
	out := newSign()
	c := bash(outside + "head -c 50000 /dev/zero; echo; echo last")
	c.Linger = linger
	c.Stdout = writerFunc(func(p []byte) (int, error) {
		<-time.After(3 * linger)
		return out.Write(p[:min(len(p), 1<<20)])
	})
	c.Stderr = c.Stdout
	result, err := Run(asynctest.Context(t), c)
	pid := out.pid(t, "daemon")
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	require.NoError(t, err)
	assert.True(t, result.Held)
	assert.Contains(t, out.String(), "last\n")
}

func TestATimeoutStopsIt(t *testing.T) {
	result, err := Run(asynctest.Context(t), bash("sleep 600"), async.Timeout(50*time.Millisecond))
	assert.Equal(t, syscall.SIGTERM, result.Signal)
	var late *async.TimeoutError
	require.ErrorAs(t, err, &late)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
}

func TestAWriterThatFailsStopsIt(t *testing.T) {
	c := bash("trap 'exit 7' TERM; while echo y; do :; done")
	c.Stdout = writerFunc(func([]byte) (int, error) { return 0, os.ErrClosed })
	result, err := Run(asynctest.Context(t), c)
	assert.Equal(t, 7, result.Code)
	var lost *OutputError
	require.ErrorAs(t, err, &lost)
	assert.Equal(t, "stdout", lost.Stream)
	assert.ErrorIs(t, err, os.ErrClosed)
}

func TestAWriterThatBlocksDoesNotHangIt(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, 1)
	c := bash("echo ready; sleep 600")
	c.GiveUp, c.Linger = 200*time.Millisecond, -1
	c.Stdout = writerFunc(func(p []byte) (int, error) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-release
		return len(p), nil
	})
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		<-entered
		cancel(errUser)
	}()
	result, err := Run(ctx, c)
	close(release)
	assert.Equal(t, syscall.SIGTERM, result.Signal)
	assert.ErrorIs(t, err, errUser)
	assert.ErrorIs(t, err, ErrStuck)
}

func TestWhatCannotBeStartedIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	result, err := Run(ctx, Command{Args: []string{"/no/such/program"}})
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.Equal(t, -1, result.Code)
	_, err = Run(ctx, Command{})
	assert.Error(t, err)

	cancel(errUser)
	result, err = Run(ctx, bash("exit 0"))
	assert.ErrorIs(t, err, errUser)
	assert.Equal(t, -1, result.Code)
	assert.Zero(t, result.Pid)
}

// Limit bounds commands, and not the tasks that a command needs.
func TestCommandsRunWithinALimit(t *testing.T) {
	for _, in := range []struct {
		name string
		call func(ctx context.Context, run func(ctx context.Context) error) error
	}{
		{"Scope", func(ctx context.Context, run func(ctx context.Context) error) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, run)
				async.Go(ctx, run)
				return nil
			}, async.Limit(1))
		}},
		{"ForEach", func(ctx context.Context, run func(ctx context.Context) error) error {
			return async.ForEach(ctx, slices.Values([]int{1, 2, 3}), func(ctx context.Context, _ int) error {
				return run(ctx)
			}, async.Limit(1))
		}},
	} {
		t.Run(in.name, func(t *testing.T) {
			alone := filepath.Join(t.TempDir(), "alone")
			require.NoError(t, in.call(asynctest.Context(t), func(ctx context.Context) error {
				out, errs := newSign(), newSign()
				c := bash("mkdir " + alone + " && head -c 1000000 /dev/zero && head -c 1000000 /dev/zero >&2 && rmdir " + alone)
				c.Stdout, c.Stderr = out, errs
				_, err := Run(ctx, c)
				assert.Equal(t, 1000000, out.text.Len())
				assert.Equal(t, 1000000, errs.text.Len())
				return err
			}))
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestBothStreamsMayBeOneWriter(t *testing.T) {
	out, errs := newSign(), newSign()
	c := bash("for i in 1 2 3; do echo out $i; echo err $i >&2; done")
	c.Stdout, c.Stderr = out, errs
	_, err := Run(asynctest.Context(t), c)
	require.NoError(t, err)
	assert.Equal(t, "out 1\nout 2\nout 3\n", out.String())
	assert.Equal(t, "err 1\nerr 2\nerr 3\n", errs.String())

	var both bytes.Buffer // not for two goroutines at once
	c.Stdout, c.Stderr = &both, &both
	_, err = Run(asynctest.Context(t), c)
	require.NoError(t, err)
	assert.Equal(t, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n", both.String())

	c.Stdout, c.Stderr = uncomparable{out}, uncomparable{errs}
	_, err = Run(asynctest.Context(t), c)
	require.NoError(t, err)
}

type uncomparable []*sign

func (u uncomparable) Write(p []byte) (int, error) { return u[0].Write(p) }

func TestACommandGetsWhatItIsGiven(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(name, []byte("from the file\n"), 0o600))
	in, err := os.Open(name)
	require.NoError(t, err)
	defer in.Close()
	extra, err := os.Open(name)
	require.NoError(t, err)
	defer extra.Close()
	var out bytes.Buffer
	_, err = Run(asynctest.Context(t), Command{
		Args:       []string{"bash", "-c", `cat; cat <&3; echo "$WORD"; [ . -ef "$DIR" ] && echo there`},
		Dir:        dir,
		Env:        append(os.Environ(), "WORD=hello", "DIR="+dir),
		Stdin:      in,
		ExtraFiles: []*os.File{extra},
		Stdout:     &out,
	})
	require.NoError(t, err)
	assert.Equal(t, "from the file\nfrom the file\nhello\nthere\n", out.String())
}

func TestACommandMayWriteToAFile(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	c := bash("echo out; echo err >&2")
	c.Stdout, c.Stderr = f, f
	_, err = Run(asynctest.Context(t), c)
	require.NoError(t, err)
	text, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	assert.Equal(t, "out\nerr\n", string(text))
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

	release := make(chan struct{})
	c = bash("trap '' TERM; sleep 600 & echo ready; wait")
	c.Grace = 20 * time.Millisecond
	c.Signalling = func(syscall.Signal, error) { <-release }
	result, _, err = cancelled(t, c)
	close(release)
	assert.Equal(t, syscall.SIGKILL, result.Signal)
	assert.ErrorIs(t, err, errUser)
	assert.ErrorContains(t, err, "has not returned")
}

func TestAWriterThatPanicsStopsIt(t *testing.T) {
	c := bash("trap 'exit 7' TERM; while echo y; do :; done")
	c.Stderr = writerFunc(func([]byte) (int, error) { panic("of the writer") })
	c.Stdout = c.Stderr
	result, err := Run(asynctest.Context(t), c)
	assert.Equal(t, 7, result.Code)
	var lost *OutputError
	require.ErrorAs(t, err, &lost)
	var panicked *async.PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Equal(t, "of the writer", panicked.Value)
}

func TestAWatchdogStopsIt(t *testing.T) {
	ctx := asynctest.Context(t)
	errSick := errors.New("it is sick")
	var told error
	c := bash("trap 'exit 7' TERM; sleep 600 & echo ready; wait")
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
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	p := newProcess(bash("sleep 600 & exit 0"), cancel) // would linger for a minute
	task := async.Start(ctx, p.run, async.OnAbort(p.stop))
	<-p.started
	_, err := p.leader.Wait(home)
	require.NoError(t, err)
	cancel(errUser)
	_, err = task.Wait(home)
	require.NoError(t, err)
	require.NoError(t, p.err)
	assert.Nil(t, p.result.Cause)
	assert.True(t, p.result.Left)
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
