package kvqueue

import (
	"context"
	"time"
)

// Age returns for how long the first ready item has been in the queue, by the clocks of its producer and of this
// process, at one bounded read however many items there are.
//
//	if age, err := q.Age(ctx); err == nil && age > time.Hour {
//		alert("nobody keeps up with the orders", age)
//	}
//
// It is 0 if no item is ready, and if it is not known when the first one was added: see [Item]. Claimed items,
// which may be older, are not looked at. Age is a statistic: two clocks that differ make it wrong, and the order of
// the queue has nothing to do with it. It blocks until the store has answered, or ctx ends.
func (q *Queue) Age(ctx context.Context) (time.Duration, error) {
	l, err := q.front(ctx, 1)
	if err != nil || len(l.front) == 0 || l.front[0].rec.added == 0 {
		return 0, err
	}
	return max(0, time.Since(l.front[0].rec.addedAt())), nil
}
