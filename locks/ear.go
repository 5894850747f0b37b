package locks

import "time"

// earTime is for how long a process goes on to listen for a lock when nobody waits for it any
// more. To begin to listen costs a connection on some stores, and one question more on all:
// who asks first and listens then has to ask again. Where a lock is fought for, that would be
// most of what each turn costs.
const earTime = time.Second

// An ear hears the hints of a store for one lock. It belongs to the gate of the lock, and
// to the manager while there is none.
type ear struct {
	name  Name
	hints <-chan struct{} // nil when there are none any more
	stop  func()
	timer *time.Timer // ends it; nil while a gate has it
}

// listen returns the ear that was kept for the lock, or a new one. News from before is forgotten:
// the question that follows sees it.
func (m *Manager) listen(name Name) *ear {
	m.mu.Lock()
	e := m.ears[name]
	if e != nil {
		e.timer.Stop() // too late, it does nothing: the ear is not among those that are kept
		delete(m.ears, name)
	}
	m.mu.Unlock()
	if e == nil {
		e = &ear{name: name}
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

// hush is called when nobody waits for the lock any more. It keeps the ear for a while, if
// the lock is worth it.
func (m *Manager) hush(e *ear, keep bool) {
	m.mu.Lock()
	if keep = keep && !m.closed && m.ears[e.name] == nil; keep {
		m.ears[e.name] = e
		e.timer = time.AfterFunc(earTime, func() { m.deaf(e) })
	}
	m.mu.Unlock()
	if !keep {
		e.stop()
	}
}

// deaf ends an ear that was kept, unless a gate has it by now.
func (m *Manager) deaf(e *ear) {
	m.mu.Lock()
	mine := m.ears[e.name] == e
	if mine {
		delete(m.ears, e.name)
	}
	m.mu.Unlock()
	if mine {
		e.stop()
	}
}
