package kvqueue

import (
	"context"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// TimeLimit is how long a run of an item may take; 0, the default, is no limit.
//
//	q, err := kvqueue.Open(ctx, kv, "orders", kvqueue.TimeLimit(5*time.Minute))
//
// The run is that of a handler, which may have several items, or the time from [Queue.Take] until its items are
// settled. At the limit the scope fails: its context is cancelled, with an [*async.TimeoutError] as the cause,
// which names the limit, and the run counts as a failure for [MaxAttempts], also if the handler returns nil then.
// The observer is told by [Overdue]. Items that were settled before, also those that wait for their [RetryDelay],
// are not concerned, and without others nothing is cancelled.
//
// A claim is a scope: until a handler that does not look at its context has returned, its items stay claimed as long as
// the process lives, and nobody else is given them. It is an option of the queue: see [Queue.Configure]. A run
// has the limit that was so when its items were claimed.
func TimeLimit(d time.Duration) Option {
	return policyOption(func(p *Policy) error {
		if d < 0 {
			return invalid("TimeLimit", "%v is less than 0: 0 is no limit", d)
		}
		p.TimeLimit = d
		return nil
	})
}

// limit has the scope of ctx fail when the time is up for items that were claimed just now, unless all of them are
// settled, or stop was called. When stop has returned, the scope does not fail any more because of the limit.
func (q *Queue) limit(ctx context.Context, items []Item) (stop func()) {
	limit := items[0].claim.policy.TimeLimit
	if limit == 0 {
		return func() {}
	}
	claims := make([]*claim, len(items))
	for i := range items {
		claims[i] = items[i].claim
	}
	var mu sync.Mutex
	stopped := false
	t := time.AfterFunc(limit, func() {
		err := &async.TimeoutError{Task: "kvqueue " + q.name, Limit: limit, Waited: limit}
		mu.Lock()
		late := unsettled(claims)
		failed := !stopped && late > 0 && async.Fail(ctx, err)
		mu.Unlock()
		if failed {
			q.tell(Report{Kind: Overdue, Items: late, Why: err.Error()})
		}
	})
	return func() {
		t.Stop()
		mu.Lock()
		defer mu.Unlock()
		stopped = true
	}
}

// unsettled is how many of the claims are those of a run still: of one that waits for its [RetryDelay] the run has
// ended.
func unsettled(claims []*claim) (n int) {
	for _, c := range claims {
		if c.is() != settled && !c.delayed.Load() {
			n++
		}
	}
	return n
}
