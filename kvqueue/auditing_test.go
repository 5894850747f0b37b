package kvqueue_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

func TestAnAuditCountsWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		q := open(t, kv, "q", kvqueue.MaxAttempts(1), kvqueue.Owner("me"))
		for i := range 600 {
			_, err := q.Enqueue(t.Context(), fmt.Appendf(nil, "%03d", i))
			require.NoError(t, err)
		}
		require.Error(t, q.Do(t.Context(), 1, func(context.Context, []kvqueue.Item) error { return assert.AnError }))
		require.NoError(t, q.Do(t.Context(), 2, func(ctx context.Context, _ []kvqueue.Item) error {
			a, err := q.Audit(ctx)
			assert.NoError(t, err)
			assert.Equal(t, kvqueue.Length{Ready: 597, Claimed: 2, Dead: 1}, a.Length)
			assert.Equal(t, int64(1800), a.Bytes)
			assert.Empty(t, a.Faults)
			if assert.Len(t, a.Sessions, 1) {
				s := a.Sessions[0]
				assert.Equal(t, kvqueue.SessionAudit{ID: s.ID, Owner: "me", Alive: true, Claims: 2}, s)
			}
			return nil
		}))
	})
}

func TestAnAuditFindsWhatShouldNotBe(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(root string, k kvqueue.Key) kvqueue.Write
		says  string
	}{
		"no payload": {func(root string, k kvqueue.Key) kvqueue.Write {
			return kvqueue.Write{Key: append([]byte(root+"d/"), k[:]...), Delete: true}
		}, "has no payload"},
		"no item": {func(root string, k kvqueue.Key) kvqueue.Write {
			return kvqueue.Write{Key: append([]byte(root+"q/"), k[:]...), Delete: true}
		}, "not ready, claimed or dead"},
		"two places": {func(root string, k kvqueue.Key) kvqueue.Write {
			return kvqueue.Write{Key: append([]byte(root+"x/"), k[:]...), Value: []byte{0, 0, 1}}
		}, "ready and dead"},
		"below the floor": {func(root string, _ kvqueue.Key) kvqueue.Write {
			return kvqueue.Write{Key: []byte(root + "h"), Value: []byte{0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0}}
		}, "below the floor 9"},
		"no session": {func(root string, k kvqueue.Key) kvqueue.Write {
			return kvqueue.Write{Key: append([]byte(root+"w/00000000000000ff/"), k[:]...), Value: []byte{0, 0, 1, 1}}
		}, "session ff, which is unknown"},
		"no record": {func(root string, k kvqueue.Key) kvqueue.Write {
			return kvqueue.Write{Key: append([]byte(root+"q/"), k[:]...), Value: []byte{0xff}}
		}, "did not write"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kv := newStore(t)
				q := open(t, kv, "q")
				pos, err := q.Enqueue(t.Context(), []byte("a"))
				require.NoError(t, err)
				for range 10 { // so that the floor may be above the item
					_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("else")}})
					require.NoError(t, err)
				}
				_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{c.spoil("kvq/q/", pos.First)})
				require.NoError(t, err)
				a, err := q.Audit(t.Context())
				require.NoError(t, err)
				assert.Contains(t, strings.Join(a.Faults, "\n"), c.says)
			})
		})
	}
}

func TestAnAuditOfAQueueInUseFindsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var all sync.WaitGroup
		for range 3 {
			q := open(t, kv, "q")
			all.Go(func() {
				_ = q.Consume(ctx, 2, 2, func(context.Context, []kvqueue.Item) error { time.Sleep(time.Millisecond); return nil })
			})
			all.Go(func() {
				for ctx.Err() == nil {
					_, _ = q.Enqueue(ctx, []byte("a"), []byte("b"))
					time.Sleep(time.Millisecond)
				}
			})
		}
		q := open(t, kv, "q")
		for range 20 {
			a, err := q.Audit(t.Context())
			require.NoError(t, err)
			assert.Empty(t, a.Faults)
			time.Sleep(7 * time.Millisecond)
		}
		stop()
		all.Wait()
	})
}
