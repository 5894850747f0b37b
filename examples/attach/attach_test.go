//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/attach/daemon"
	"github.com/ambit-go/ambit/examples/internal/clitest"
	"github.com/ambit-go/ambit/examples/internal/remote"
)

func TestTheStatusOfTheScriptIsReported(t *testing.T) {
	for _, want := range []int{0, 3, 255} {
		r := trial{script: fmt.Sprintf("echo out; echo err >&2; exit %d", want), limits: unhurried()}.run(t)
		assert.Equal(t, "out\n", r.out.String())
		assert.Equal(t, "err\n", r.err.String())
		if want == 0 {
			assert.NoError(t, r.failure)
			continue
		}
		exit, ok := errors.AsType[*ExitError](r.failure)
		require.True(t, ok, "%v", r.failure)
		assert.Equal(t, want, exit.Status)
	}
}

// The script goes on when it has read the end, and the test decides for how
// long.
func TestTheEndOfTheInputDoesNotEndTheJob(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	r := trial{
		script: "cat; echo ready; read -r word <" + fifo + "; echo $word; exit 3",
		stdin:  strings.NewReader("some input\n"), limits: unhurried(),
		do: func(_, _ func()) { require.NoError(t, os.WriteFile(fifo, []byte("later\n"), 0)) },
	}.run(t)
	assert.Equal(t, "some input\nready\nlater\n", r.out.String())
	exit, ok := errors.AsType[*ExitError](r.failure)
	require.True(t, ok, "%v", r.failure)
	assert.Equal(t, 3, exit.Status)
}

// breaking gives some input, and then an error, but not before something.
type breaking struct {
	io.Reader
	before <-chan struct{}
}

func (b *breaking) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err == nil {
		return n, nil
	}
	<-b.before
	return 0, syscall.EIO
}

func TestAnInputThatBreaksEndsTheJobAndItsLastOutputArrives(t *testing.T) {
	t.Parallel()
	out := clitest.NewSign()
	r := trial{
		script: "trap 'head -c 1000000 /dev/zero; echo last words; exit 7' TERM; read -r line; echo got $line" + forever,
		stdin:  &breaking{strings.NewReader("input\n"), out.Ready}, limits: unhurried(),
		stdout: writerFunc(func(p []byte) (int, error) { // slow, so that much is still to come when the job has ended
			time.Sleep(2 * time.Millisecond)
			return out.Write(p)
		}),
	}.run(t)
	assert.ErrorIs(t, r.failure, syscall.EIO)
	assert.Contains(t, r.failure.Error(), "the input broke")
	exit, ok := errors.AsType[*ExitError](r.failure)
	require.True(t, ok, "%v", r.failure)
	assert.Equal(t, 7, exit.Status)
	assert.True(t, strings.HasPrefix(out.String(), "got input\n"))
	assert.True(t, strings.HasSuffix(out.String(), "last words\n"))
	assert.Len(t, out.String(), len("got input\nready\n")+1000000+len("last words\n"))
}

// endless is an input without end that nobody reads.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// The job's end closes the connection while the input is written to it, and that
// must not count for more than the end.
func TestTheLastOutputOfAJobThatEndsAtOnceArrives(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input io.Reader
		flaw  daemon.Flaw
	}{
		"no input":                         {strings.NewReader(""), ""},
		"endless input":                    {endless{}, ""},
		"endless input and a hasty daemon": {endless{}, daemon.Hasty},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				r := trial{
					flaw: c.flaw, stdin: c.input,
					script: "head -c 300000 /dev/zero; echo last; exit 3", limits: unhurried(),
				}.run(t)
				exit, ok := errors.AsType[*ExitError](r.failure)
				require.True(t, ok, "%v", r.failure)
				require.Equal(t, 3, exit.Status)
				require.EqualError(t, r.failure, exit.Error(), "nobody has stopped it")
				require.Len(t, r.out.String(), 300000+len("last\n"))
			}
		})
	}
}

// A pipe that stays open: nothing comes, and closing it would wake nobody up.
func TestAnInputThatNeverComesDoesNotKeepTheJobFromEnding(t *testing.T) {
	in, keep, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer keep.Close()
	r := trial{script: "echo out", stdin: in, limits: unhurried()}.run(t)
	assert.NoError(t, r.failure)
	assert.Equal(t, "out\n", r.out.String())
}

func TestAJobThatDoesNotReadItsInputCanBeStopped(t *testing.T) {
	r := trial{
		script: "trap 'echo last words; exit 7' TERM" + forever,
		stdin:  endless{}, limits: unhurried(), do: cancelling,
	}.run(t)
	assert.ErrorIs(t, r.failure, errUser)
	assert.True(t, errors.As(r.failure, new(*ExitError)), "%v", r.failure)
	assert.Contains(t, r.out.String(), "last words\n")
}

func TestACancelledJobIsStoppedAndTellsTheCauseAndItsOwnEnd(t *testing.T) {
	for _, want := range []int{0, 7} {
		r := trial{
			script: fmt.Sprintf("echo pid $$; trap 'echo last words; exit %d' TERM", want) + forever,
			limits: unhurried(), do: cancelling,
		}.run(t)
		assert.ErrorIs(t, r.failure, errUser)
		assert.Contains(t, r.failure.Error(), fmt.Sprintf("cancelled by the user; the script exited with status %d", want))
		assert.Contains(t, r.out.String(), "last words\n")
		assert.Empty(t, clitest.InGroup(t, clitest.Number(t, r.out.String(), "pid")))
	}
}

func TestAScriptThatIgnoresTERMIsKilled(t *testing.T) {
	t.Parallel()
	limits := unhurried()
	limits.Grace = time.Second // the least that the API can say
	r := trial{script: "echo pid $$; trap '' TERM" + forever, limits: limits, do: cancelling}.run(t)
	assert.ErrorIs(t, r.failure, errUser)
	exit, ok := errors.AsType[*ExitError](r.failure)
	require.True(t, ok, "%v", r.failure)
	assert.Equal(t, 137, exit.Status)
	assert.Empty(t, clitest.InGroup(t, clitest.Number(t, r.out.String(), "pid")))
}

func TestADaemonThatDoesNotStopTheJobIsAbandoned(t *testing.T) {
	t.Parallel()
	limits := unhurried()
	limits.Request, limits.Grace = 2*time.Second, soon
	r := trial{flaw: daemon.NoStop, script: "echo pid $$" + forever, limits: limits, do: cancelling}.run(t)
	assert.ErrorIs(t, r.failure, errUser)
	assert.True(t, errors.As(r.failure, new(*AbandonedError)), "%v", r.failure)
	silent, ok := errors.AsType[*NoAnswerError](r.failure)
	require.True(t, ok, "%v", r.failure)
	assert.Contains(t, silent.Request, "/stop")
	// To remove the container has ended it.
	assert.Empty(t, clitest.InGroup(t, clitest.Number(t, r.out.String(), "pid")))
}

func TestADaemonThatNeverAnswersIsGivenUp(t *testing.T) {
	limits := unhurried()
	limits.Request = soon
	r := trial{flaw: daemon.Silent, script: "exit 0", limits: limits}.run(t)
	silent, ok := errors.AsType[*NoAnswerError](r.failure)
	require.True(t, ok, "%v", r.failure)
	assert.Contains(t, silent.Request, "/create")
	assert.True(t, errors.As(r.failure, new(*RemoveError)), "%v", r.failure)
}

func TestADaemonThatGoesAwayEndsTheRun(t *testing.T) {
	t.Parallel()
	r := trial{
		script: "echo pid $$" + forever, limits: unhurried(),
		do: func(stop, _ func()) { stop() }, gone: true,
	}.run(t)
	assert.True(t, errors.As(r.failure, new(*AbandonedError)), "%v", r.failure)
	assert.Empty(t, clitest.InGroup(t, clitest.Number(t, r.out.String(), "pid")))
}

func TestAnOutputThatBreaksOffStopsTheJob(t *testing.T) {
	r := trial{
		flaw: daemon.Cut, script: "echo pid $$; trap 'exit 7' TERM; seq 100000" + forever, limits: unhurried(),
	}.run(t)
	assert.ErrorIs(t, r.failure, io.ErrUnexpectedEOF)
	exit, ok := errors.AsType[*ExitError](r.failure)
	require.True(t, ok, "%v", r.failure)
	assert.Equal(t, 7, exit.Status)
	assert.Empty(t, clitest.InGroup(t, clitest.Number(t, r.out.String(), "pid")))
}

func TestAnOutputThatDoesNotEndDoesNotHangIt(t *testing.T) {
	limits := unhurried()
	limits.Output = soon
	r := trial{flaw: daemon.NoEnd, script: "echo last; exit 3", limits: limits}.run(t)
	assert.True(t, errors.As(r.failure, new(*ExitError)), "%v", r.failure)
	assert.Contains(t, r.notes.String(), "its output has not")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestOutputThatCannotBeWrittenStopsTheJob(t *testing.T) {
	r := trial{
		script: "trap 'exit 7' TERM; while echo y; do :; done", limits: unhurried(),
		stdout: writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe }),
	}.run(t)
	assert.ErrorIs(t, r.failure, io.ErrClosedPipe)
	exit, ok := errors.AsType[*ExitError](r.failure)
	require.True(t, ok, "%v", r.failure)
	assert.Equal(t, 7, exit.Status)
}

func TestAReaderThatDoesNotReadDoesNotHangACancelledRun(t *testing.T) {
	limits := unhurried()
	limits.Output = soon
	entered, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	first := true
	r := trial{
		script: "trap 'exit 7' TERM; echo one" + forever, limits: limits, at: entered, do: cancelling,
		stdout: writerFunc(func(p []byte) (int, error) {
			if first {
				close(entered)
			}
			first = false
			<-release
			return len(p), nil
		}),
	}.run(t)
	assert.ErrorIs(t, r.failure, errUser)
	assert.ErrorIs(t, r.failure, remote.ErrStuck)
	assert.True(t, errors.As(r.failure, new(*async.StragglerError)), "%v", r.failure)
	assert.True(t, errors.As(r.failure, new(*ExitError)), "%v", r.failure)
}

func TestACancelledStartTellsTheCause(t *testing.T) {
	t.Parallel()
	now := make(chan struct{})
	close(now)
	limits := unhurried()
	limits.Request = time.Second // to remove takes as long
	r := trial{flaw: daemon.Silent, limits: limits, at: now, do: cancelling}.run(t)
	assert.ErrorIs(t, r.failure, errUser)
	assert.ErrorIs(t, r.failure, context.Canceled)
}
