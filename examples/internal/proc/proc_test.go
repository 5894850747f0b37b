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
)

// hang bounds what must not hang. No test takes as long as that.
const hang = time.Minute

// forever is a shell loop that no signal but a trapped or deadly one ends, and
// that notices a trapped one at once.
const forever = "; while :; do sleep 60 & wait $!; done"

var errUser = errors.New("cancelled by the user")

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
	assert.Empty(t, members(t, result.Pid), "left in the group")
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
		result, _, err := cancelled(t, bash(fmt.Sprintf("trap 'exit %d' TERM; echo ready", want)+forever))
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
	c := bash("trap '' TERM; echo ready" + forever)
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
		c := bash(fmt.Sprintf(`trap 'exit %d' TERM; (trap '' TERM; echo grandchild $BASHPID; echo ready%s) & wait`, want, forever))
		c.Grace = time.Second
		result, out, err := cancelled(t, c)
		assert.Equal(t, want, result.Code)
		assert.True(t, result.Killed)
		assert.ErrorIs(t, err, errUser)
		assert.False(t, alive(out.pid(t, "grandchild")))
	}
}

func TestTheWholeGroupGetsTERM(t *testing.T) {
	c := bash(`trap 'wait; exit 7' TERM; (trap 'echo told; exit' TERM; echo ready` + forever + `) & wait`)
	result, out, err := cancelled(t, c)
	assert.Equal(t, 7, result.Code)
	assert.False(t, result.Killed)
	assert.ErrorIs(t, err, errUser)
	assert.Contains(t, out.String(), "told\n")
}

func TestWhatIsStoppedHearsTERM(t *testing.T) {
	c := bash(`trap 'exit 7' TERM; echo ready; kill -STOP $$` + forever)
	result, _, err := cancelled(t, c)
	assert.Equal(t, 7, result.Code)
	assert.ErrorIs(t, err, errUser)
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
	assert.False(t, alive(out.pid(t, "child")))
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

func TestSomebodyOutsideTheGroupThatKeepsTheOutputOpenDoesNotHangIt(t *testing.T) {
	out := newSign()
	c := bash(`setsid sleep 600 & echo daemon $!; echo last; exit 0`)
	c.Linger, c.Stdout = 100*time.Millisecond, out
	result, err := Run(asynctest.Context(t), c)
	pid := out.pid(t, "daemon")
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	require.NoError(t, err)
	assert.True(t, result.Held || result.Left) // setsid may not have come to it
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

// members returns the ids of the living processes of a group.
func members(t *testing.T, group int) []int {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,pgid=,stat=").Output()
	require.NoError(t, err)
	var pids []int
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) == 3 && f[1] == strconv.Itoa(group) && f[2][0] != 'Z' {
			pid, _ := strconv.Atoi(f[0])
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive reports whether a process runs; one that nobody has reaped does not.
func alive(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}
