package kvqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
)

// The scope is cancelled, and then the claims are lost: the loss is one more failure of the
// scope, listed once, and the cause stays the first.
func TestClaimsThatAreLostAfterTheirScopeWasToldToStopAreListedBesideTheCause(t *testing.T) {
	type stopped func(ctx context.Context) (_ context.Context, stop func(), cause error)
	for name, stopped := range map[string]stopped{
		"cancelled": func(ctx context.Context) (context.Context, func(), error) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel, context.Canceled
		},
		"by a deadline, as the last call of the store": func(ctx context.Context) (context.Context, func(), error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			return ctx, func() { time.Sleep(2 * time.Second); cancel() }, context.DeadlineExceeded
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newCut(newStore(t))
				q := open(t, net, "q")
				_, err := q.Enqueue(t.Context(), []byte("a"), []byte("b"))
				require.NoError(t, err)
				ctx, stop, cause := stopped(t.Context())
				err = async.Scope(ctx, func(ctx context.Context) error {
					for range 2 { // of one session, which is lost once
						_, err := q.Take(ctx, 1)
						require.NoError(t, err)
					}
					async.OnExit(ctx, func(_ context.Context, outcome error) error { // before the items are settled
						assert.ErrorIs(t, outcome, kvqueue.ErrLost)
						assert.Equal(t, async.Stopped, async.EndingOf(outcome))
						return nil
					})
					stop()
					require.ErrorIs(t, ctx.Err(), cause)
					net.off()
					time.Sleep(time.Hour) // the session is over
					return nil
				})
				var scope *async.ScopeError
				require.ErrorAs(t, err, &scope)
				assert.Equal(t, cause, scope.Cause)
				require.Len(t, scope.Errors, 1)
				assert.ErrorIs(t, scope.Errors[0], kvqueue.ErrLost)
				net.on()
			})
		})
	}
}

// Claims on another queue are the scope's, too. It was told to stop before the first claims were
// lost, so no attempt is spent on the others.
func TestClaimsThatAreLostInAScopeThatWasToldToStopSpendNoAttemptOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, other := newCut(newStore(t)), newStore(t)
		q, kept := open(t, net, "q"), open(t, other, "q")
		for _, q := range []*kvqueue.Queue{q, kept} {
			_, err := q.Enqueue(t.Context(), []byte("a"))
			require.NoError(t, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		assert.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			for _, q := range []*kvqueue.Queue{q, kept} {
				_, err := q.Take(ctx, 1)
				require.NoError(t, err)
			}
			stop()
			net.endSession()
			synctest.Wait()
			time.Sleep(time.Minute) // until the next renewal
			return ctx.Err()
		}), kvqueue.ErrLost)
		assert.Equal(t, 1, nextAttempt(t, other))
	})
}

// Take has claimed for a session that ends before the scope is told of its items.
func TestATakeWhoseClaimsAreLostAlreadyFailsItsScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *kvqueue.Queue
		q = open(t, newStore(t), "q", kvqueue.Observe(func(r kvqueue.Report) {
			if r.Kind == kvqueue.Claimed {
				q.Expire()
			}
		}))
		_, err := q.Enqueue(t.Context(), []byte("a"))
		require.NoError(t, err)
		err = async.Scope(t.Context(), func(ctx context.Context) error {
			items, err := q.Take(ctx, 1)
			require.NoError(t, err)
			require.ErrorIs(t, items[0].Err(), kvqueue.ErrLost)
			assert.ErrorIs(t, context.Cause(ctx), kvqueue.ErrLost)
			return nil
		})
		var lost *kvqueue.LostError
		require.ErrorAs(t, err, &lost)
		assert.Equal(t, error(lost), err, "it is the only failure")
	})
}
