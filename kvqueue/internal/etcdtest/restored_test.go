//go:build linux

package etcdtest_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
)

// A store that goes back to an older state brings back what was acknowledged since, and has lost what
// was added. Handles that are open go on: one that waits is served, though its watch is of a revision
// that has not come yet; what one holds it has lost; what is added is behind what was there.
func TestHandlesGoOnWhenTheStoreWasRestored(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	handle := func() *kvqueue.Queue {
		return open(t, etcdkv.New(cluster.Client(t), etcdkv.Timeout(2*time.Second)), "q", kvqueue.TTL(time.Hour))
	}
	holds, waits := handle(), handle()
	enqueue(t, holds, "a", "b", "c")
	assert.Equal(t, "a", string(one(t, holds).Value))
	restore := cluster.Members[0].Save(t)
	assert.Equal(t, "b", string(one(t, holds).Value))

	held, ended := make(chan kvqueue.Item), make(chan error)
	restored := make(chan struct{})
	go func() {
		ended <- holds.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
			held <- items[0]
			<-restored
			return holds.Ack(ctx, items...)
		})
	}()
	assert.Equal(t, "c", string((<-held).Value))
	for i := range 50 { // so that the watch is far ahead
		enqueue(t, waits, "lost "+strconv.Itoa(i))
		assert.Equal(t, "lost "+strconv.Itoa(i), string(one(t, waits).Value))
	}
	got := make(chan string)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var taker sync.WaitGroup
	taker.Go(func() {
		for range 2 {
			err := waits.Do(ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
				got <- string(items[0].Value)
				return nil
			})
			assert.True(t, err == nil || errors.Is(err, kvqueue.ErrUnknown), "%v", err)
		}
	})
	eventually(t, "it waits", func() bool {
		results, _, err := etcdkv.New(cluster.Client(t)).Read(t.Context(), kvqueue.Range{Begin: []byte("kvq/q/r/"), End: []byte("kvq/q/r0")})
		return err == nil && len(results[0].Pairs) == 1
	})
	restore()
	begin := time.Now()
	assert.Equal(t, "b", <-got, "it was acknowledged after the state that is back")
	t.Logf("the handle that waits has noticed after %v", time.Since(begin))
	assert.Equal(t, "c", <-got)
	taker.Wait()
	close(restored)
	assert.ErrorIs(t, <-ended, kvqueue.ErrLost)

	enqueue(t, holds, "d")
	enqueue(t, handle(), "e")
	enqueue(t, waits, "f")
	assert.Equal(t, "d", string(one(t, waits).Value))
	assert.Equal(t, "e", string(one(t, holds).Value))
	assert.Equal(t, "f", string(one(t, handle()).Value))
	eventually(t, "nothing is left", func() bool {
		n, err := waits.Len(t.Context())
		return err == nil && n == kvqueue.Length{}
	})
}
