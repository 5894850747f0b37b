package byhand

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

func publish(ctx context.Context, topics []string, send func(ctx context.Context, topic string) error) {
	for _, topic := range topics {
		go send(ctx, topic)
	}
}

func CheckPublish(t *testing.T) {
	var sent atomic.Int32
	publish(t.Context(), []string{"news", "jobs"}, func(context.Context, string) error {
		sent.Add(1)
		return nil
	})
	time.Sleep(100 * time.Millisecond)
	if n := sent.Load(); n != 2 {
		t.Errorf("sent to %d topics", n)
	}
}
