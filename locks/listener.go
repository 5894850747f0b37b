package locks

import "time"

// listenTime is for how long a process goes on to listen for a lock when nobody waits for it any
// more. To begin to listen costs a connection on some stores, and one question more on all:
// who asks first and listens then has to ask again. Where a lock is fought for, that would be
// most of what each turn costs.
const listenTime = time.Second

// A listener hears the hints of a store for one lock. It belongs to the waitlist of the lock, and
// to the manager while there is none.
type listener struct {
	name  Name
	hints <-chan struct{} // nil when there are none any more
	stop  func()
	timer *time.Timer // ends it; nil while a waitlist has it
}

// listen returns the listener that was kept for the lock, or a new one. News from before is forgotten:
// the question that follows sees it.
func (m *Manager) listen(name Name) *listener {
	m.mu.Lock()
	e := m.listeners[name]
	if e != nil {
		e.timer.Stop() // too late, it does nothing: the listener is not among those that are kept
		delete(m.listeners, name)
	}
	m.mu.Unlock()
	if e == nil {
		e = &listener{name: name}
		e.hints, e.stop = m.store.Listen(name)
		return e
	}
	e.timer = nil
	select {
	case _, ok := <-e.hints:
		if !ok {
			e.hints = nil
		}
	default:
	}
	return e
}

// unlisten is called when nobody waits for the lock any more. It keeps the listener for a while, if
// the lock is worth it.
func (m *Manager) unlisten(e *listener, keep bool) {
	m.mu.Lock()
	if keep = keep && !m.closed && m.listeners[e.name] == nil; keep {
		m.listeners[e.name] = e
		e.timer = time.AfterFunc(listenTime, func() { m.forget(e) })
	}
	m.mu.Unlock()
	if !keep {
		e.stop()
	}
}

// forget ends an listener that was kept, unless a waitlist has it by now.
func (m *Manager) forget(e *listener) {
	m.mu.Lock()
	mine := m.listeners[e.name] == e
	if mine {
		delete(m.listeners, e.name)
	}
	m.mu.Unlock()
	if mine {
		e.stop()
	}
}
