package locks

import "time"

// Suspend has the manager believe that the machine was suspended for d.
func (m *Manager) Suspend(d time.Duration) { m.clock.Suspend(d) }
