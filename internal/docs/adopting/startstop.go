package adopting

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/async"
)

var errStopped = errors.New("poller was stopped")

// A Poller polls now and then, until it is stopped.
type Poller struct {
	group *async.Group
	poll  func(ctx context.Context) error
}

// NewPoller returns a poller that belongs to the scope of ctx.
func NewPoller(ctx context.Context, interval time.Duration, poll func(ctx context.Context) error) *Poller {
	p := &Poller{async.NewGroup(ctx, async.Name("poller")), poll}
	_ = p.group.Go(func(ctx context.Context) error {
		for async.Sleep(ctx, interval) == nil {
			if err := poll(ctx); err != nil {
				return err // Stop returns it
			}
		}
		return nil // it was told to stop: that is no failure
	}, async.Daemon())
	return p
}

// Now polls at once, beside the others.
func (p *Poller) Now() error { return p.group.Go(p.poll) }

// Stop returns when nothing of the poller runs any more, or when ctx ends.
func (p *Poller) Stop(ctx context.Context) error { return p.group.Stop(ctx, errStopped) }
