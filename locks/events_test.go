package locks_test

import (
	"sync"

	"github.com/ambit-go/ambit/locks"
)

// events are what a manager has told.
type events struct {
	mu   sync.Mutex
	list []locks.Event
}

func (e *events) add(event locks.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, event)
}

// of returns those of a kind.
func (e *events) of(kind locks.EventKind) []locks.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []locks.Event
	for _, one := range e.list {
		if one.Kind == kind {
			list = append(list, one)
		}
	}
	return list
}
