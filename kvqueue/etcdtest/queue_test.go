//go:build linux

package etcdtest_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// open opens a handle that is closed at the end of the test.
func open(t *testing.T, kv kvqueue.KV, name string, options ...kvqueue.Option) *kvqueue.Queue {
	t.Helper()
	q, err := kvqueue.Open(t.Context(), kv, name, append([]kvqueue.Option{kvqueue.CompactedElsewhere(), kvqueue.RetryDelay(0, 0)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, q.Close(ctx))
	})
	return q
}

func enqueue(t *testing.T, q *kvqueue.Queue, items ...string) {
	t.Helper()
	for _, i := range items {
		_, err := q.Enqueue(t.Context(), []byte(i))
		require.NoError(t, err)
	}
}

// one takes one item, which must come, and acknowledges it.
func one(t *testing.T, q *kvqueue.Queue) (item kvqueue.Item) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, q.Do(ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
		item = items[0]
		return nil
	}))
	return item
}

// eventually waits for what must come to be so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for begin := time.Now(); !so(); time.Sleep(20 * time.Millisecond) {
		require.Less(t, time.Since(begin), patience, what)
	}
}

// numbers are "0", "1" and so on.
func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, strconv.Itoa(i))
	}
	return all
}
