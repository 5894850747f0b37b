package cookbook

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// publish sends to every topic, beside its caller, who has a scope.
func publish(ctx context.Context, topics []string, send func(ctx context.Context, topic string) error) {
	for _, topic := range topics {
		async.Go(ctx, func(ctx context.Context) error { return send(ctx, topic) })
	}
}

func TestPublishSendsToEveryTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t) // the scope of the test
		var sent atomic.Int32
		publish(ctx, []string{"news", "jobs"}, func(context.Context, string) error {
			sent.Add(1)
			return nil
		})
		synctest.Wait() // until nobody can go on
		if n := sent.Load(); n != 2 {
			t.Errorf("sent to %d topics", n)
		}
	})
}
