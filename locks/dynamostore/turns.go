package dynamostore

import (
	"context"
	"sync"

	"github.com/ambit-go/ambit/locks"
)

// turns has the steps of this process on one lock come one after the other. Two at the
// same time would only make each other's writes fail.
type turns struct {
	mu sync.Mutex
	by map[locks.Name]*turn
}

// A turn is held by the step that has put a value into busy.
type turn struct {
	busy chan struct{}
	n    int // steps that have it or want it
}

// take waits for the turn of a step, until ctx is done. give ends it.
func (t *turns) take(ctx context.Context, name locks.Name) (give func(), err error) {
	t.mu.Lock()
	if t.by == nil {
		t.by = map[locks.Name]*turn{}
	}
	one := t.by[name]
	if one == nil {
		one = &turn{busy: make(chan struct{}, 1)}
		t.by[name] = one
	}
	one.n++
	t.mu.Unlock()
	select {
	case one.busy <- struct{}{}:
		return func() {
			<-one.busy
			t.leave(name, one)
		}, nil
	case <-ctx.Done():
		t.leave(name, one)
		return nil, locks.Unavailable(context.Cause(ctx))
	}
}

func (t *turns) leave(name locks.Name, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.n--; one.n == 0 {
		delete(t.by, name)
	}
}
