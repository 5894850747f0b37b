package locks

import "time"

// Suspend has the manager believe that the machine was suspended for as long as f says.
func (m *Manager) Suspend(f func() time.Duration) {
	m.clock.suspended, m.clock.first = f, f()
}
