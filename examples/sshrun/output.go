package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
)

// errStuck is about an output that nobody takes.
var errStuck = errors.New("the output was not written to its end: whoever reads it does not")

// pump returns a task that copies output until there is no more. Output that
// cannot be written stops the script, for that reason; what still comes of it
// is then dropped, so that the script is not kept from ending.
func (r *running) pump(dst io.Writer, src io.Reader) func(context.Context) (struct{}, error) {
	return func(context.Context) (struct{}, error) {
		_, err := io.Copy(&meteredWriter{dst, &r.meter}, src)
		if err != nil {
			r.script.Cancel(fmt.Errorf("cannot write the output: %w", err))
			_, _ = io.Copy(io.Discard, src)
		}
		return struct{}{}, nil
	}
}

// A meter tells which side the pumps wait for.
type meter struct {
	writing atomic.Int32 // how many are in a Write
	blocked atomic.Int64 // nanoseconds that they were in a Write
}

// A meteredWriter is a writer with a meter.
type meteredWriter struct {
	io.Writer
	meter *meter
}

func (m *meteredWriter) Write(p []byte) (int, error) {
	begin := time.Now()
	m.meter.writing.Add(1)
	n, err := m.Writer.Write(p)
	m.meter.blocked.Add(int64(time.Since(begin))) // before writing: drain reads them in the other order
	m.meter.writing.Add(-1)
	return n, err
}

// drain waits for the end of the output, when the script has ended with err.
// What the script has left running may hold the output open for ever; it gets
// the limit of the output, then the connection is closed. The time that a
// reader on our side takes does not count, unless we were told to stop.
func (r *running) drain(ctx context.Context, output *async.Future[[]struct{}], err error) error {
	begin, before := time.Now(), r.meter.blocked.Load()
	told := errors.As(err, new(*stoppedError))
	for closed := false; !r.drained(ctx, output); {
		reading := r.meter.writing.Load() > 0
		ours := time.Duration(r.meter.blocked.Load() - before)
		held := !reading && time.Since(begin)-ours >= r.Limits.Output
		stop := told || ctx.Err() != nil
		switch {
		case closed && stop:
			return errStuck
		case closed:
		case held:
			fmt.Fprintln(r.Notes, "sshrun: the script has ended, and something that it left running holds its output open")
			fallthrough
		case stop:
			closed = true
			r.close()
		}
	}
	return nil
}

// drained waits for the end of the output for as long as the limit says,
// whether ctx is done or not.
func (r *running) drained(ctx context.Context, output *async.Future[[]struct{}]) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Limits.Output)
	defer cancel()
	_, err := output.Wait(ctx)
	return err == nil
}
