package taskqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/lease"
	"github.com/ambit-go/ambit/taskqueue"
)

// A laptop that was closed: no timer has fired, and no clock of Go has moved.
func TestAfterTheMachineWasSuspendedTheHandlerLearnsItFirst(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context) error{
		"it asks": func(ctx context.Context) error { return ctx.Err() },
		"it waits": func(ctx context.Context) error {
			begin := time.Now()
			<-ctx.Done()
			if time.Since(begin) > 10*time.Second {
				return errors.New("it was told when the timer had fired")
			}
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := lease.NewClock()
				defer taskqueue.UseClock(clock)()
				q, s := newOutage(t)
				id := add(t, q, taskqueue.Task{Type: "t"})
				work, stop := context.WithCancel(t.Context())
				defer stop()
				require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
					defer stop()
					time.Sleep(time.Minute) // extended some times
					assert.NoError(t, ctx.Err())
					s.set(true, false)
					clock.Suspend(time.Hour)
					assert.ErrorIs(t, ask(ctx), context.Canceled)
					assert.Equal(t, taskqueue.ErrLeaseLost, context.Cause(ctx))
					assert.True(t, c.Deadline().Before(time.Now().Add(30*time.Second)))
					s.set(false, false)
					return nil
				}}, taskqueue.Lease(30*time.Second)))
				i, err := q.Get(context.Background(), id)
				require.NoError(t, err)
				assert.NotEqual(t, taskqueue.StateDone, i.State, "nothing is settled")
			})
		})
	}
}
