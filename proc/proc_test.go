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
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
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
				assert.Equal(t, 1000000, len(out.String()))
				assert.Equal(t, 1000000, len(errs.String()))
				return err
			}))
		})
	}
}

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
