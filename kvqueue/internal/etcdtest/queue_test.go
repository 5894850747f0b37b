//go:build linux

package etcdtest_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// open opens a handle that is closed at the end of the test. Its session lives for longer than a busy machine stands still.
func open(t *testing.T, kv kvqueue.KV, name string, options ...kvqueue.Option) (q *kvqueue.Queue) {
	t.Helper()
	options = append([]kvqueue.Option{kvqueue.CompactedElsewhere(), kvqueue.RetryDelay(0, 0), kvqueue.TTL(time.Minute)}, options...)
	var err error
	eventually(t, "it is open", func() bool {
		q, err = kvqueue.Open(t.Context(), kv, name, options...)
		return !late(err)
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := q.Close(ctx); !late(err) {
			require.NoError(t, err)
		}
	})
	return q
}

// late reports whether etcd did not answer in the time that a store gives it, which some have short: on a busy machine that
// is no fault of a queue.
func late(err error) bool { return err != nil && strings.Contains(err.Error(), "did not answer") }

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
