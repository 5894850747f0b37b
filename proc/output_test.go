//go:build unix

package proc

import (
	"bytes"
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
)

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
	assert.Empty(t, clitest.Alive(t, clitest.Number(t, out.String(), "child")))
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

const outside = `read -r pid < <(exec setsid bash -c 'echo $$; exec sleep 600 >&2'); echo daemon $pid; `

func TestSomebodyOutsideTheGroupThatKeepsTheOutputOpenDoesNotHangIt(t *testing.T) {
	out := newSign()
	c := bash(outside + "echo last")
	c.Linger, c.Stdout, c.Stderr = 50*time.Millisecond, out, out
	result, err := Run(asynctest.Context(t), c)
	pid := clitest.Number(t, out.String(), "daemon")
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
	pid := clitest.Number(t, out.String(), "daemon")
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	require.NoError(t, err)
	assert.True(t, result.Held)
	assert.Contains(t, out.String(), "last\n")
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
