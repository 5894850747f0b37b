package locks

import "time"

// Suspend has the manager believe that the machine was suspended for as long as f says.
func (m *Manager) Suspend(f func() time.Duration) {
	c := m.clock
	c.suspended, c.slept = f, f()
	c.first = 0
	c.boot = func() time.Duration { return time.Since(c.start) + f() - c.slept }
}
