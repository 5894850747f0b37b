//go:build unix

package remote

import (
	"context"
	"errors"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
)

// ErrStuck is about output that nobody takes.
var ErrStuck = errors.New("the output was not written to its end: whoever reads it does not")

// A Meter tells which side output waits for: the one that it comes from, or
// whoever reads it here. The zero Meter is ready.
type Meter struct {
	writing atomic.Int32 // how many are in a Write
	blocked atomic.Int64 // nanoseconds that they were in a Write
}

// Writer returns a writer to w that the meter watches.
func (m *Meter) Writer(w io.Writer) io.Writer { return &meteredWriter{w, m} }

type meteredWriter struct {
	io.Writer
	meter *Meter
}

func (m *meteredWriter) Write(p []byte) (int, error) {
	begin := time.Now()
	m.meter.writing.Add(1)
	n, err := m.Writer.Write(p)
	m.meter.blocked.Add(int64(time.Since(begin))) // before writing: Drain reads them in the other order
	m.meter.writing.Add(-1)
	return n, err
}

// Drain waits for the end of the output of a script that has ended. What that
// has left running may hold the output open for ever: it gets limit, then cut
// is called, which must end the reading, and held is true.
//
// The time that a reader on our side takes does not count. Only if the script
// was told to stop, or when ctx is done, cut is called after limit in any case,
// and output that has not come to its end another limit later is ErrStuck.
func Drain[T any](ctx context.Context, output *async.Future[T], m *Meter, limit time.Duration, told bool, cut func()) (held bool, err error) {
	begin, before := time.Now(), m.blocked.Load()
	for closed := false; !endsWithin(ctx, output, limit); {
		reading := m.writing.Load() > 0
		ours := time.Duration(m.blocked.Load() - before)
		idle := !reading && time.Since(begin)-ours >= limit
		stop := told || ctx.Err() != nil
		switch {
		case closed && stop:
			return held, ErrStuck
		case !closed && (idle || stop):
			closed, held = true, idle
			cut()
		}
	}
	return held, nil
}

// Keep runs body with a context for tasks that carry output: they belong to a
// stretch that is not cancelled with ctx, as the last output comes when a script
// has been stopped. Keep returns when they have ended. If body fails, it waits
// for patience, and then leaves those behind that have not, with a
// StragglerError: a Write that does not return cannot be ended.
func Keep(ctx context.Context, patience time.Duration, body func(kept context.Context) error) error {
	return async.Shield(ctx, math.MaxInt64, func(ctx context.Context) error {
		return async.Scope(ctx, body, async.Name("output"), async.DetachAfter(patience))
	})
}

// endsWithin waits for a future for d, whether ctx is done or not.
func endsWithin[T any](ctx context.Context, f *async.Future[T], d time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	defer cancel()
	_, _ = f.Wait(ctx)
	_, _, ended := f.Result()
	return ended
}
