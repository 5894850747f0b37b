package relational

import (
	"sync"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/hint"
)

// A Hub gives hints to those in this process that listen, and has what brings hints
// from other processes run only while somebody does.
type Hub struct {
	hint.Board[locks.Name]
	// Start is called when somebody listens and nobody did before. The function that it
	// returns is called when nobody listens any more. nil: nothing is to be started.
	Start func() (stop func())
	// Added is called whenever somebody begins to listen, after Start. It may be nil.
	Added func(name locks.Name)

	turn   sync.Mutex // one start or stop at a time, in the order of their causes
	stop   func()     // guarded by turn; nil: not started
	closed bool       // guarded by turn: nothing is started any more
}

// Listen is Store.Listen.
func (h *Hub) Listen(name locks.Name) (<-chan struct{}, func()) {
	hints, stop := h.Board.Listen(name)
	h.adjust()
	if h.Added != nil {
		h.Added(name)
	}
	return hints, sync.OnceFunc(func() {
		stop()
		h.adjust()
	})
}

// Hints is Hint for each of some.
func (h *Hub) Hints(names []locks.Name) {
	for _, name := range names {
		h.Hint(name)
	}
}

// adjust starts or stops what brings hints from other processes.
func (h *Hub) adjust() {
	h.turn.Lock()
	defer h.turn.Unlock()
	wanted := h.Len() > 0 && !h.closed
	switch {
	case wanted && h.stop == nil && h.Start != nil:
		h.stop = h.Start()
	case !wanted && h.stop != nil:
		h.stop()
		h.stop = nil
	}
}

// Close stops what was started. Channels stay as they are.
func (h *Hub) Close() {
	h.turn.Lock()
	h.closed = true
	h.turn.Unlock()
	h.adjust()
}
