package kvqueue

import (
	"context"
	"time"
)

// Age returns for how long the first ready item has been in the queue, by the clocks of its producer and of this
// process, at a bounded read however many items there are. It looks at the first items of a few groups that are not
// held: what is behind an item that is claimed does not count, however long it waits.
//
//	if age, err := q.Age(ctx); err == nil && age > time.Hour {
//		alert("nobody keeps up with the orders", age)
//	}
//
// It is 0 if no item is ready, and if it is not known when the first one was added: see [Item]. Claimed items,
// which may be older, are not looked at. Age is a statistic: two clocks that differ make it wrong, and the order of
// the queue has nothing to do with it. It blocks until the store has answered, or ctx ends.
func (q *Queue) Age(ctx context.Context) (time.Duration, error) {
	l, err := q.front(ctx, lookedAt)
	if err != nil {
		return 0, err
	}
	var oldest time.Duration
	behind := false // the first item of no group
	for _, r := range l.front {
		counts := r.rec.group != "" || !behind
		if behind = behind || r.rec.group == ""; counts && r.rec.added > 0 {
			oldest = max(oldest, time.Since(r.rec.addedAt()))
		}
	}
	return oldest, nil
}

// lookedAt is how many of the first ready items Age looks at.
const lookedAt = 8
