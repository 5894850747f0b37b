//go:build unix

package cookbook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

const forever = "; while :; do sleep 0.02; done"

// A sign is written to by a child that is ready to be stopped.
type sign struct {
	text  bytes.Buffer
	once  sync.Once
	ready chan struct{}
}

func newSign() *sign { return &sign{ready: make(chan struct{})} }

func (s *sign) Write(p []byte) (int, error) {
	defer s.once.Do(func() { close(s.ready) })
	return s.text.Write(p)
}

// cancelled runs a script, cancels it when it has written something, and
// returns its output, too.
func cancelled(t *testing.T, script string, grace time.Duration) (code int, output string, err error) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	out := newSign()
	go func() {
		<-out.ready
		cancel(errUser)
	}()
	cmd := exec.Command("bash", "-c", script)
	cmd.Stdout = out
	code, err = RunProcess(ctx, cmd, 0, grace)
	return code, out.text.String(), err
}

func TestAProcessThatEndsByItselfGivesItsCode(t *testing.T) {
	ctx := asynctest.Context(t)
	for _, want := range []int{0, 3} {
		code, err := RunProcess(ctx, exec.Command("bash", "-c", fmt.Sprintf("exit %d", want)), time.Minute, time.Minute)
		require.Equal(t, want, code)
		require.Equal(t, want != 0, err != nil, err)
	}
}

func TestAProcessThatEndsOnTERMGivesItsCodeAndTheCause(t *testing.T) {
	for _, want := range []int{0, 7} {
		code, _, err := cancelled(t, fmt.Sprintf("trap 'exit %d' TERM; echo ready", want)+forever, time.Minute)
		require.Equal(t, want, code)
		require.ErrorIs(t, err, errUser)
		var exit *exec.ExitError
		require.Equal(t, want != 0, errors.As(err, &exit))
	}
}

func TestAProcessThatIgnoresTERMIsKilled(t *testing.T) {
	code, _, err := cancelled(t, "trap '' TERM; echo ready"+forever, 100*time.Millisecond)
	require.Equal(t, -1, code)
	require.ErrorIs(t, err, errUser)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
}

func TestAProcessThatTakesTooLongIsStopped(t *testing.T) {
	ctx := asynctest.Context(t)
	code, err := RunProcess(ctx, exec.Command("sleep", "600"), 50*time.Millisecond, time.Minute)
	require.Equal(t, -1, code)
	var late *async.TimeoutError
	require.ErrorAs(t, err, &late)
	require.Equal(t, 50*time.Millisecond, late.Limit)
}

func TestAGrandchildThatIgnoresTERMIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks into /proc")
	}
	inGrace(t, 7, func(grace time.Duration) int {
		code, output, err := cancelled(t, leavesOne, grace)
		require.ErrorIs(t, err, errUser)
		isGone(t, output)
		return code
	})
}

// leavesOne ends on TERM with 7, and starts a shell that ignores TERM and tells its pid.
const leavesOne = "trap 'exit 7' TERM; (trap '' TERM; echo $BASHPID" + forever + ") & wait"

// inGrace requires that a script ends on TERM with a code. Where the machine is too busy for the script to end within
// the grace, it gets a longer one.
func inGrace(t *testing.T, want int, run func(grace time.Duration) (code int)) {
	grace := 200 * time.Millisecond
	code := run(grace)
	for ; code == -1 && grace < time.Minute; code = run(grace) { // killed
		grace *= 2
	}
	require.Equal(t, want, code)
}

// isGone requires that the process ends that has told its pid.
func isGone(t *testing.T, output string) {
	pid, err := strconv.Atoi(strings.TrimSpace(output))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !alive(pid) }, time.Minute, time.Millisecond)
}

// alive reports whether a process runs; one that nobody has reaped does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return state[0] != 'Z' && state[0] != 'X'
}

func TestAProcessThatCannotStartIsAnError(t *testing.T) {
	ctx := asynctest.Context(t)
	code, err := RunProcess(ctx, exec.Command("/no/such/program"), time.Minute, time.Minute)
	require.Equal(t, -1, code)
	require.ErrorIs(t, err, os.ErrNotExist)

	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errUser)
	code, err = RunProcess(ctx, exec.Command("true"), time.Minute, time.Minute)
	require.Equal(t, -1, code)
	require.ErrorIs(t, err, errUser)
}
