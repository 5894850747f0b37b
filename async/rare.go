package async

// rare is what few scopes have. It is guarded by the mu of the scope.
type rare struct {
	// changed is closed, and nil again, when a child leaves. Only Shutdown, at a
	// root, waits for it.
	changed chan struct{}
	// left stands at the root for a scope that has returned without its tasks: the
	// last of these to leave, daemons left out, takes it, and ends the scope. Of a group
	// that nobody has told to end it is the task of the group itself.
	left    *task
	resting *place // the groups in the scope that have no tasks, the last one first
}

func (s *scope) rareLocked() *rare {
	if s.rare == nil {
		s.rare = new(rare)
	}
	return s.rare
}

// childHasLeftLocked is what few scopes do when a child has left.
func (s *scope) childHasLeftLocked(r *rare) {
	r.wakeLocked()
	if s.t == s.home.top { // Shutdown may wait for it
		s.home.wake()
	}
	switch atRoot := r.left; {
	case atRoot == nil || s.live > s.daemons:
	case atRoot != s.t:
		// Scope has returned without its tasks: the last one to leave ends what is
		// left of it. left is taken under the lock, so that is done once.
		r.left = nil
		go s.endAbandoned(atRoot) // exit hooks run there: not on the goroutine of a task that has ended
	case s.live > 0:
	case s.shut: // it was a promise, and its outcome may be nobody's yet
		s.t.self.(*Group).reviewLocked()
	default:
		s.t.self.(*Group).restLocked()
	}
}

// wakeLocked has those that wait for a change look again.
func (r *rare) wakeLocked() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}
