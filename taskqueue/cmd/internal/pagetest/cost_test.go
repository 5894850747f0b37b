package pagetest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/page"
)

// A counted store counts how often its figures are asked for.
type counted struct {
	*store
	stats atomic.Int64
}

func (c *counted) Stats(ctx context.Context, queue string) (taskqueue.Stats, error) {
	c.stats.Add(1)
	time.Sleep(time.Millisecond)
	return c.store.Stats(ctx, queue)
}

func TestManyWhoLookAtThePageCostTheStoreOneLookASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{store: open(t)}
		fill(t, s.store, "mail", "")
		p := page.New(s)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 10 {
					for _, at := range []string{"/", "/?queue=mail", "/api", "/metrics", "/healthz"} {
						status, _, _ := ask(p, http.MethodGet, at)
						assert.Equal(t, http.StatusOK, status)
					}
					time.Sleep(500 * time.Millisecond)
				}
			})
		}
		all.Wait()
		assert.LessOrEqual(t, s.stats.Load(), int64(5), "1,000 requests in 5 s")
	})
}
