package cookbook

import (
	"context"
	"sync/atomic"

	"github.com/ambit-go/ambit/async"
)

// A Streamer uploads chunks of a log, four at a time. An upload that fails
// leaves a hole in the log, and stops no other.
type Streamer struct {
	uploads *async.Group
	upload  func(ctx context.Context, chunk string) error
	holes   atomic.Int64
}

// NewStreamer returns a streamer that belongs to the scope of ctx.
func NewStreamer(ctx context.Context, upload func(ctx context.Context, chunk string) error) *Streamer {
	s := &Streamer{upload: upload}
	s.uploads = async.NewGroup(ctx, async.Name("log"), async.Limit(4), async.OnFailure(func(error) error {
		s.holes.Add(1)
		return nil
	}))
	return s
}

// Write has a chunk uploaded. It does not wait, and fails once Stop has returned.
func (s *Streamer) Write(chunk string) error {
	return s.uploads.Go(func(ctx context.Context) error { return s.upload(ctx, chunk) })
}

// Holes tells how many chunks could not be uploaded.
func (s *Streamer) Holes() int64 { return s.holes.Load() }

// Stop waits for the uploads. When ctx ends it cancels those that are left. When
// it returns, none runs. The error is nil if every chunk was tried.
func (s *Streamer) Stop(ctx context.Context) error {
	if err := s.uploads.Wait(ctx); ctx.Err() == nil {
		return err
	}
	return s.uploads.Stop(context.WithoutCancel(ctx), context.Cause(ctx))
}
