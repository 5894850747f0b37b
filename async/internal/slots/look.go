package slots

// Stands returns where t stands, and at which limiter it queues, nil if at none. It appends to
// holds the limiters of which t holds a slot.
func (t *Task[T, W]) Stands(holds []*Limiter[T, W]) (state State, at *Limiter[T, W], _ []*Limiter[T, W]) {
	switch t.state {
	case Queued, Returning, Running, Handed:
		for l := t.Limiter; l != t.at; l = l.outer {
			holds = append(holds, l)
		}
	}
	return t.state, t.at, holds
}

// Held returns how many slots l has, and how many of them are held: more than there are, if waits
// were cut short.
func (l *Limiter[T, W]) Held() (size, held int) { return l.size, l.size - l.free }

// Size returns how many slots l has. It never changes.
func (l *Limiter[T, W]) Size() int { return l.size }
