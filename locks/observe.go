package locks

import "time"

// An Event is something that happened to a lock in this process.
type Event struct {
	At     time.Time
	Kind   EventKind
	Tenant string
	Key    string // empty: it is about several locks
	Token  int64
	Err    error
	Took   time.Duration // of a grant or a refusal: how long was waited; of a release: how long it was held; of a renewal: the call
	Count  int           // of a renewal: how many locks; of a semaphore: its size
}

// An EventKind says what has happened.
type EventKind string

const (
	EventWaiting     EventKind = "waiting" // it is not free, and the call waits
	EventGranted     EventKind = "granted"
	EventNotGranted  EventKind = "not_granted" // Err says why
	EventReleased    EventKind = "released"    // Err: it could not be given back
	EventRenewed     EventKind = "renewed"     // Count locks in one call
	EventRenewFailed EventKind = "renew_failed"
	EventLost        EventKind = "lost"       // Err is a *LostError
	EventEnded       EventKind = "ended"      // after each grant, once: it is lost, or is to be given back now
	EventGivenBack   EventKind = "given_back" // it was granted too late, or to a caller that had gone
	EventSmaller     EventKind = "smaller"    // the semaphore has only Count permits, fewer than a call has named; told once
	EventLed         EventKind = "led"        // the body of Lead has ended; Err is what it has returned
)

// Observe has f told of what happens. It is called by many goroutines, with no lock held,
// and must not block: renewals wait for it. A [Metrics] has such a function. Several Observe
// options are all told.
func Observe(f func(Event)) Option {
	return managerOption(func(s *settings) error {
		if f == nil {
			return &ValidationError{"Observe", "the function is nil: leave the option out"}
		}
		s.observe = append(s.observe, f)
		return nil
	})
}

// mostSmaller is of how many semaphores a manager knows what it has told: with more keys than
// that it tells again.
const mostSmaller = 1000

// tellSmaller tells once of each size that a semaphore has.
func (m *Manager) tellSmaller(name Name, size int) {
	m.mu.Lock()
	known := m.smaller[name] == size
	if m.smaller[name] == 0 && len(m.smaller) >= mostSmaller {
		clear(m.smaller)
	}
	m.smaller[name] = size
	m.mu.Unlock()
	if !known {
		m.tell(Event{Kind: EventSmaller, Key: name.Key, Count: size})
	}
}

func (m *Manager) tell(e Event) {
	if len(m.set.observe) == 0 {
		return
	}
	e.At, e.Tenant = time.Now(), m.set.tenant
	for _, f := range m.set.observe {
		f(e)
	}
}
