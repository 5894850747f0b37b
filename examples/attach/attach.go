//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/examples/attach/frame"
	"github.com/ambit-go/ambit/examples/internal/remote"
)

// An attached is a job that runs, and the connection to it.
type attached struct {
	Job
	daemon *client
	conn   *stream
	output *async.Future[struct{}]
	meter  remote.Meter // of the output
}

// The roles in a job. The leader is its end. The helpers carry its output and
// its input: that one of them comes to its end says nothing, that one breaks
// ends the job.
const leader = 0

func decides(r async.Result[int]) bool { return r.Index == leader || r.Err != nil }

// run attends to the job until it has ended. The choice only watches the
// output: when it is made against the job, the job is told to stop, and what it
// prints until it has is still wanted. So the output does not end with ctx, but
// with the connection.
func (a *attached) run(ctx context.Context) error {
	return remote.Keep(ctx, a.Limits.Output, func(kept context.Context) error {
		a.output = async.Start(kept, func(context.Context) error { return a.carryOutput(kept) }, async.Name("output"))
		status, err := async.Until(ctx, decides, a.end, a.watchOutput, a.carryInput).Await(ctx, a.Limits.Script)
		if err != nil {
			return a.stop(ctx, err)
		}
		return errors.Join(exited(status), a.drain(ctx, false))
	})
}

// end is the leader: the exit status of the job.
func (a *attached) end(ctx context.Context) (int, error) {
	status, err := a.daemon.wait(ctx, a.Name)
	if err != nil {
		return 0, fmt.Errorf("cannot wait for the job: %w", err)
	}
	return status, nil
}

// watchOutput fails if the output does.
func (a *attached) watchOutput(ctx context.Context) (int, error) {
	_, err := a.output.Wait(ctx)
	return 0, err
}

// carryOutput carries the output to its end. If that fails, what still comes is
// dropped, by a task of owner, so that the job is not kept from ending.
func (a *attached) carryOutput(owner context.Context) error {
	err := frame.Copy(a.meter.Writer(a.Stdout), a.meter.Writer(a.Stderr), a.conn)
	if err == nil {
		return nil
	}
	async.Go(owner, func(context.Context) error {
		_, _ = io.Copy(io.Discard, a.conn) // to the end of the connection, however that comes
		return nil
	}, async.Name("rest of the output"))
	return fmt.Errorf("the output broke off: %w", err)
}

// carryInput carries the input to its end. Neither the read nor the write look
// at a context. The read is given up when ctx is done. A write ends with the
// connection, and that not before the output does.
func (a *attached) carryInput(ctx context.Context) (int, error) {
	stdin, err := newInput(a.Stdin)
	if err != nil {
		return 0, fmt.Errorf("cannot read the input: %w", err)
	}
	defer stdin.close()
	defer context.AfterFunc(ctx, stdin.giveUp)()
	buf := make([]byte, 32<<10)
	for {
		n, err := stdin.Read(buf)
		if n > 0 {
			if _, err := a.conn.Write(buf[:n]); err != nil {
				return 0, nil // nobody takes it: the job is about to end, and whoever leads says how
			}
		}
		switch {
		case err == io.EOF:
			_ = a.conn.CloseWrite() // the job reads the end
			return 0, nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case err != nil:
			return 0, fmt.Errorf("the input broke: %w", err)
		}
	}
}

// drain waits for the last of the output of a job that has ended.
func (a *attached) drain(ctx context.Context, told bool) error {
	held, err := remote.Drain(ctx, a.output, &a.meter, a.Limits.Output, told, func() { _ = a.conn.Close() })
	if held {
		fmt.Fprintln(a.Notes, "attach: the job has ended, and its output has not")
		return nil
	}
	if err == nil {
		_, err, _ = a.output.Result()
	} else {
		a.output.Cancel(err) // it is left: what it returns one day is nobody's affair
	}
	return err
}
