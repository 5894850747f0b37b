//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/internal/remote"
)

// pump returns a task that copies output until there is no more. Output that
// cannot be written stops the script, for that reason; what still comes of it
// is then dropped, so that the script is not kept from ending.
func (r *running) pump(dst io.Writer, src io.Reader) func(context.Context) (struct{}, error) {
	return func(context.Context) (struct{}, error) {
		_, err := io.Copy(r.meter.Writer(dst), src)
		if err != nil {
			r.script.Cancel(fmt.Errorf("cannot write the output: %w", err))
			_, _ = io.Copy(io.Discard, src)
		}
		return struct{}{}, nil
	}
}

// drain waits for the end of the output, when the script has ended with err.
func (r *running) drain(ctx context.Context, output *async.Future[[]struct{}], err error) error {
	told := errors.As(err, new(*remote.StoppedError))
	held, err := remote.Drain(ctx, output, &r.meter, r.Limits.Output, told, r.close)
	if held {
		fmt.Fprintln(r.Notes, "sshrun: the script has ended, and something that it left running holds its output open")
	}
	return err
}
