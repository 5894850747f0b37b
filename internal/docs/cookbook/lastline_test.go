package cookbook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async/asynctest"
)

func TestACancelledStepKeepsTheLastLineOfItsLog(t *testing.T) {
	ctx, cancel := context.WithCancelCause(asynctest.Context(t))
	var log bytes.Buffer
	var cut error
	err := RunStep(ctx, func(ctx context.Context, out io.Writer) error {
		_, _ = io.WriteString(out, "first\n")
		cancel(errUser)
		<-ctx.Done()
		_, _ = io.WriteString(out, "last\n")
		return context.Cause(ctx)
	}, func(ctx context.Context, in io.Reader) error {
		_, err := io.Copy(&log, in)
		cut = ctx.Err()
		return err
	})
	require.ErrorIs(t, err, errUser)
	require.NoError(t, cut, "the upload is not cancelled with the step")
	require.Equal(t, "first\nlast\n", log.String())
}

func TestAnUploadThatFailsDoesNotStopTheStep(t *testing.T) {
	errFull, errExit := errors.New("disk full"), errors.New("exit status 3")
	err := RunStep(asynctest.Context(t), func(_ context.Context, out io.Writer) error {
		for range 100 {
			if _, err := io.WriteString(out, "line\n"); err != nil {
				return err
			}
		}
		return errExit
	}, func(context.Context, io.Reader) error { return errFull })
	require.ErrorIs(t, err, errFull)
	require.ErrorIs(t, err, errExit)
}

func TestAStepThatPanicsEndsItsLog(t *testing.T) {
	require.PanicsWithValue(t, "planted", func() {
		_ = RunStep(asynctest.Context(t),
			func(context.Context, io.Writer) error { panic("planted") },
			func(_ context.Context, in io.Reader) error { _, err := io.Copy(io.Discard, in); return err })
	})
}
