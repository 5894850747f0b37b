package cookbook

import (
	"context"
	"errors"
	"io"

	"github.com/ambit-go/ambit/async"
)

// RunStep runs a step and uploads what it prints, to the last line, also when
// ctx is cancelled. An upload that fails does not stop the step: both errors are
// returned. upload has limits of its own.
func RunStep(
	ctx context.Context, run func(ctx context.Context, out io.Writer) error,
	upload func(ctx context.Context, in io.Reader) error,
) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		in, out := io.Pipe()
		log := async.Start(context.WithoutCancel(ctx), func(ctx context.Context) error {
			err := upload(ctx, in)
			_, _ = io.Copy(io.Discard, in) // the step would block if nobody read
			return err
		}, async.Name("log"))
		defer func() { _ = out.Close() }() // also if run panics, or the log would have no end
		err := run(ctx, out)
		_ = out.Close()
		_, lost := log.Join(ctx)
		return errors.Join(err, lost)
	})
}
