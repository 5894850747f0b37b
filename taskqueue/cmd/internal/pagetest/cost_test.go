package pagetest

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

func TestRunHasRatesReadyForWhoComesToLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{store: open(t)}
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		p := page.New(s)
		ctx, stop := context.WithCancel(context.Background())
		var all sync.WaitGroup
		all.Go(func() { assert.NoError(t, p.Run(ctx)) })
		for range 20 {
			_, err := q.Enqueue(ctx, taskqueue.Task{Type: "t"})
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		_, text, _ := ask(p, http.MethodGet, "/")
		assert.True(t, regexp.MustCompile(`data-label="In /s">(0\.9\d|1\.0)<`).MatchString(text), "one a second, or nearly")
		assert.Equal(t, 1, strings.Count(text, "<polyline"))
		assert.LessOrEqual(t, s.stats.Load(), int64(6), "once in five seconds, and for the request")
		stop()
		all.Wait()
	})
}
