package taskqueue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/lease"
)

// As after a suspend: the lease is over, and the timer has not fired yet.
func TestTheContextOfAHandlerLooksAtTheLease(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context) error{
		"Err": func(ctx context.Context) error { return ctx.Err() },
		"Done": func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return context.Canceled
			default:
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := lease.NewClock()
			err := async.Scope(t.Context(), func(ctx context.Context) error {
				k := lease.NewKeeper(ctx, func(context.Context, []lease.Renewal[int]) ([]error, error) { return nil, nil }, lease.WithClock(clock))
				l, err := k.Keep(1, lease.Term{Granted: k.Now(), Length: time.Hour}, leaseLost)
				require.NoError(t, err)
				under, stop := l.Context(context.Background())
				defer stop()
				_, err = async.Start(under, func(ctx context.Context) error {
					ctx = leased{ctx, under, new(Claim)}
					assert.NoError(t, ask(ctx))
					clock.Suspend(2 * time.Hour)
					assert.Error(t, ask(ctx))
					assert.Equal(t, ErrLeaseLost, context.Cause(ctx))
					return nil
				}).Join(ctx)
				return err
			})
			require.NoError(t, err)
		})
	}
}
