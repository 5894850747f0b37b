// Package turns has the steps of one process on one lock come one after the other, in a store
// where two at the same time would only make each other's writes fail.
package turns

import (
	"context"
	"sync"

	"github.com/ambit-go/ambit/locks"
)

// Turns are those of a store, by lock. The zero Turns are ready.
type Turns struct {
	mu sync.Mutex
	by map[locks.Name]*turn
}

// A turn is held by the step that has put a value into busy.
type turn struct {
	busy chan struct{}
	n    int // steps that have it or want it
}

// Take waits for the turn of a step, until ctx is done. give ends it.
func (t *Turns) Take(ctx context.Context, name locks.Name) (give func(), err error) {
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

func (t *Turns) leave(name locks.Name, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.n--; one.n == 0 {
		delete(t.by, name)
	}
}
