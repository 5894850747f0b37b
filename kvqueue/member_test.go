package kvqueue_test

import (
	"bytes"
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// The answer to how a handle begins to claim was lost, and its caller has gone: the others count on it, as
// it is the oldest, so it assigns.
func TestAHandleThatOthersCountOnAssigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := newCut(kv)
		first, second := open(t, net, "q"), open(t, kv, "q")
		ctx, leave := context.WithCancel(t.Context())
		net.intercept(func(g []kvqueue.Guard, w []kvqueue.Write) error {
			if count(w, "/s/", false) == 0 {
				return nil
			}
			net.intercept(nil)
			_, err := kv.Commit(t.Context(), g, w)
			assert.NoError(t, err)
			leave()
			return kvqueue.ErrUnknown
		})
		assert.ErrorIs(t, first.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return errFails }), context.Canceled)
		time.Sleep(time.Second)
		claims := puts(net, "/w/")
		_, err := second.Enqueue(t.Context(), numbered(20)...)
		require.NoError(t, err)
		drain(t.Context(), second, 1, 20)
		assert.EqualValues(t, 20, claims.Load())
	})
}

// An unheard store shows later than all else who claims.
type unheard struct{ *cut }

func (l unheard) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		var back []kvqueue.Event
		for e, err := range l.cut.Watch(ctx, after, prefixes...) {
			if bytes.Contains(e.Key, []byte("/s/")) {
				back = append(back, e)
				continue
			}
			if !yield(e, err) {
				return
			}
			for _, s := range back {
				time.Sleep(time.Millisecond)
				if !yield(s, nil) {
					return
				}
			}
			back = nil
		}
	}
}

// A watch may show what a session wants before it shows that this claims: it is given its items.
func TestWhoIsShownLateIsGivenItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		net := unheard{newCut(kv)}
		first, second := open(t, net, "q"), open(t, kv, "q")
		_, err := second.Enqueue(t.Context(), []byte("a")) // so that it has its session
		require.NoError(t, err)
		require.NoError(t, first.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
		_, err = second.Enqueue(t.Context(), []byte("b"))
		require.NoError(t, err)
		time.Sleep(time.Second)
		claims := puts(net.cut, "/w/")
		require.NoError(t, second.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return nil }))
		assert.EqualValues(t, 1, claims.Load(), "the first has claimed it")
	})
}
