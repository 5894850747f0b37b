package kvqueue_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// An item that is claimed for a caller that has gone goes back, and no attempt is spent on it: no
// handler has seen it. It is so, too, if the handle is closed at once.

func TestWhatNobodyWaitsForAnyMoreIsBackWhenTheHandleIsClosed(t *testing.T) {
	for name, kind := range map[string]string{"it is being claimed": "/w/", "it is on its way back": "/q/q/"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				net := newCut(kv)
				q, err := kvqueue.Open(t.Context(), net, "q")
				require.NoError(t, err)
				_, err = q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				claiming, claims := make(chan struct{}), make(chan struct{})
				before(net, "/w/", func() { close(claiming); <-claims })
				ctx, cancel := context.WithCancel(t.Context())
				left := make(chan error, 1)
				go func() { left <- q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return errFails }) }()
				<-claiming
				cancel()
				require.ErrorIs(t, <-left, context.Canceled)
				goOn := claims
				if kind == "/q/q/" {
					returning, returns := make(chan struct{}), make(chan struct{})
					before(net, kind, func() { close(returning); <-returns })
					close(claims)
					<-returning
					goOn = returns
				}
				time.AfterFunc(100*time.Millisecond, func() { close(goOn) })
				require.NoError(t, q.Close(t.Context()))
				assert.Equal(t, 1, nextAttempt(t, kv))
				s := q.Stats()
				assert.Zero(t, s.Lost)
				assert.Equal(t, s.Claimed, s.Returned)
			})
		})
	}
}

// nextAttempt claims the first item with another handle.
func nextAttempt(t *testing.T, kv kvqueue.KV) (attempt int) {
	require.NoError(t, open(t, kv, "q").Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
		attempt = items[0].Attempt
		return nil
	}))
	return attempt
}

// Another handle assigns an item to this one just as its caller leaves. The watch of this one
// is broken at that time, so it does not hear of the item before it is closed.
func TestWhatAnotherHasClaimedForAHandleIsBackWhenThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net, others := newCut(kv), newCut(kv)
		other, attempt := open(t, others, "q"), make(chan int, 1)
		go func() {
			_ = other.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
				attempt <- items[0].Attempt
				return nil
			})
		}()
		synctest.Wait() // it assigns
		q, err := kvqueue.Open(t.Context(), net, "q")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { left <- q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return errFails }) }()
		synctest.Wait() // it has a place
		withdrawing, goOn := make(chan struct{}), make(chan struct{})
		net.intercept(func(_ []kvqueue.Guard, writes []kvqueue.Write) error {
			if writes[0].Delete && bytes.Contains(writes[0].Key, []byte("/r/")) {
				net.intercept(nil)
				close(withdrawing)
				<-goOn
			}
			return nil
		})
		before(others, "/w/", func() {
			cancel()
			assert.ErrorIs(t, <-left, context.Canceled)
			<-withdrawing
			net.breakWatches(errors.New("the connection is broken"))
			synctest.Wait()
		})
		_, err = other.Enqueue(t.Context(), []byte("a"), []byte("b"))
		require.NoError(t, err)
		assert.Equal(t, 1, <-attempt)
		synctest.Wait()
		assert.Equal(t, 1, keys(t, kv, "w"), "that of the handle whose caller has left")
		close(goOn)
		require.NoError(t, q.Close(t.Context()))
		assert.Zero(t, keys(t, kv, "w"))
		assert.Equal(t, 1, nextAttempt(t, kv))
	})
}
