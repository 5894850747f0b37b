package taskqueue_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// settleSizes notes the most that one step of settling was given. Each takes a second.
type settleSizes struct {
	taskqueue.Store
	most atomic.Int64
}

func (s *settleSizes) Settle(ctx context.Context, queue string, all []store.Outcome) ([]store.SettleResult, error) {
	n := 0
	for _, o := range all {
		n += len(o.Result) + len(o.Error)
	}
	for most := s.most.Load(); int64(n) > most && !s.most.CompareAndSwap(most, int64(n)); {
		most = s.most.Load()
	}
	time.Sleep(time.Second) // the next gather meanwhile
	return s.Store.Settle(ctx, queue, all)
}
