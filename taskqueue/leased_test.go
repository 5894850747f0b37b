package taskqueue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
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
			parent, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			r := &run{c: new(Claim), cancel: cancel, deadline: time.AfterFunc(time.Hour, func() {})}
			defer r.deadline.Stop()
			f := async.Start(parent, func(ctx context.Context) error {
				ctx = leased{ctx, r}
				r.lasts(time.Now().Add(time.Hour))
				assert.NoError(t, ask(ctx))
				over := time.Now()
				r.end.Store(&over)
				assert.Error(t, ask(ctx))
				assert.Equal(t, ErrLeaseLost, context.Cause(ctx))
				assert.True(t, r.gone())
				return nil
			})
			_, err := f.Join(context.Background())
			require.NoError(t, err)
		})
	}
}
