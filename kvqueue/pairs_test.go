package kvqueue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// A settles is a call that settles an item, and what stands in the store when it has: how many items are there,
// and how often the next run of the item is.
type settles struct {
	name    string
	call    func(ctx context.Context, q *kvqueue.Queue, item kvqueue.Item, effect string) error
	attempt int // 0: the item is gone
}

var settlers = []settles{
	{"Ack", func(ctx context.Context, q *kvqueue.Queue, item kvqueue.Item, _ string) error {
		return q.Ack(ctx, item)
	}, 0},
	{"Commit", func(ctx context.Context, q *kvqueue.Queue, item kvqueue.Item, effect string) error {
		return q.Commit(ctx, []kvqueue.Item{item}, func(tx *kvqueue.Tx) { tx.Put([]byte(effect), nil) })
	}, 0},
	{"Nack", func(ctx context.Context, q *kvqueue.Queue, item kvqueue.Item, _ string) error {
		return q.Nack(ctx, nil, item)
	}, 1},
	{"Nack of a failure", func(ctx context.Context, q *kvqueue.Queue, item kvqueue.Item, _ string) error {
		return q.Nack(ctx, errFails, item)
	}, 2},
}

// A call has returned ErrUnknown; it was done, or was not. The next call comes while the store hangs, and again when it
// answers; or the handler ends. Whatever they return is true of the store, and the item is settled once.
func TestWhatFollowsAnUnknownOutcome(t *testing.T) {
	for _, first := range settlers {
		for _, next := range append(settlers, settles{name: "the end"}, settles{name: "a failure"}) {
			for _, isDone := range []bool{true, false} {
				for _, hangs := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s, done %v, hangs %v, then %s", first.name, isDone, hangs, next.name), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { follows(t, first, next, isDone, hangs) })
					})
				}
			}
		}
	}
}

func follows(t *testing.T, first, next settles, isDone, hangs bool) {
	kv := newStore(t)
	net := newCut(kv)
	q := open(t, net, "q", kvqueue.TTL(time.Hour))
	_, err := q.Enqueue(t.Context(), []byte("a"))
	require.NoError(t, err)
	var last error
	err = q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
		net.intercept(func(g []kvqueue.Guard, w []kvqueue.Write) error {
			net.intercept(nil)
			if isDone {
				_, err := kv.Commit(ctx, g, withInner(w))
				assert.NoError(t, err)
			}
			net.off()
			return kvqueue.ErrUnknown
		})
		err := within(ctx, func(ctx context.Context) error { return first.call(ctx, q, items[0], "first") })
		assert.ErrorIs(t, err, kvqueue.ErrUnknown)
		assert.ErrorContains(t, err, "the store has not answered for")
		if hangs && next.call != nil {
			err := within(ctx, func(ctx context.Context) error { return next.call(ctx, q, items[0], "next") })
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.ErrorContains(t, err, "the store has not answered for")
		}
		time.AfterFunc(time.Second, net.on)
		switch {
		case next.call != nil:
			last = next.call(ctx, q, items[0], "next")
		case next.name == "a failure":
			last = errFails
		}
		return last
	})
	assert.ErrorIs(t, err, last)
	time.Sleep(time.Minute)
	followed(t, kv, q, first, next, isDone, last)
}

// followed looks whether the store and the observer agree with what the calls have returned, the last of them last.
func followed(t *testing.T, kv kvqueue.KV, q *kvqueue.Queue, first, next settles, isDone bool, last error) {
	attempt := 0
	if n, err := q.Len(t.Context()); assert.NoError(t, err) && n.Ready > 0 {
		attempt = nextAttempt(t, kv)
	}
	t.Logf("%v, then the next run is %d", last, attempt)
	assert.Zero(t, keys(t, kv, "w"))
	switch {
	case last == nil && next.call != nil:
		assert.Equal(t, next.attempt, attempt, "as the next call has wanted it")
	case isDone, errors.Is(last, kvqueue.ErrSettled) && !errors.Is(last, kvqueue.ErrUnknown):
		assert.Equal(t, first.attempt, attempt, "as the first call has wanted it")
	}
	effects, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("first")}, kvqueue.Range{Begin: []byte("next")})
	require.NoError(t, err)
	done := len(effects[0].Pairs) + len(effects[1].Pairs)
	assert.LessOrEqual(t, done, 1)
	if first.name == "Commit" && isDone {
		assert.Len(t, effects[0].Pairs, 1)
	}
	if next.name == "Commit" {
		assert.Equal(t, last == nil, len(effects[1].Pairs) == 1, "%v", last)
	}
	s := q.Stats()
	assert.EqualValues(t, 1, s.Acked+s.Returned+s.Failed, "it is told once")
	assert.Equal(t, attempt == 0, s.Acked == 1)
}
