package tree

// This file is what a scope owns: how members come and leave, how the scope waits for them,
// and how daemons, groups and leaders end it.

// Add makes t a child of s. Registering, counting and the ended flag share
// one lock, so a task is either joined or refused. A promise is not joined.
//
// It is refused only when s has ended. In a scope that is cancelled a task still
// runs, so that one which must close a channel is not skipped; only one that queues
// for a Limit, or goes through an executor, is.
func (s *Scope) Add(t *Task) bool {
	s.Mu.Lock()
	if s.Ended {
		s.Mu.Unlock()
		return false
	}
	s.linkLocked(t)
	s.Mu.Unlock()
	return true
}

// linkLocked puts t on the list of s. A promise is not counted in Live: s does not wait
// for it. On each list the ordinals grow from the last to the first.
func (s *Scope) linkLocked(t *Task) {
	if Exploring {
		Born(t)
	}
	list := &s.children
	if t.Kind == KindPromise {
		list = &s.promises
	} else {
		s.Live++
		if t.IsDismissible() {
			s.dismissible++
			// The joiner may wait for daemons alone that it has dismissed.
			if s.dismissed && s.joiner != nil {
				s.joiner.Release() // to tell t at once that s is done
			}
		}
	}
	if *list != nil {
		(*list).prev = t
	}
	t.next, *list = *list, t
	s.started++
	t.ordinal = s.started
}

// Leave takes t off the list, and wakes the joiner if only daemons and groups are left,
// or nobody. It is the last thing that happens to t in s: when it has returned, s may
// have ended.
func (s *Scope) Leave(t *Task) {
	s.Mu.Lock()
	if t.next != nil {
		t.next.prev = t.prev
	}
	switch {
	case t.prev != nil:
		t.prev.next = t.next
	case s.children == t:
		s.children = t.next
	case s.promises == t:
		s.promises = t.next
	}
	t.next, t.prev = nil, nil
	if t.Kind != KindPromise {
		s.Live--
		if t.IsDismissible() {
			s.dismissible--
		}
	}
	if s.joiner != nil && s.Live <= s.dismissible {
		s.joiner.Release()
	}
	wakeLocked(s)
	if left := seldomOf(s).leftAtRoot; left != nil && s.Live <= s.dismissible {
		// leftAtRoot is taken under the lock, so that s is ended once. Exit hooks run there:
		// not on the goroutine of a task that has ended.
		go left()
		s.seldom.leftAtRoot = nil
	}
	s.Mu.Unlock()
}

// join waits until everything started in s has ended. It reports false if
// DetachAfter has passed before.
//
// It looks again whenever its waiter is notified: there may be news that is none,
// as when a task left and another was started. Daemons are cancelled without the
// lock; what has changed meanwhile is seen at the next look.
func (s *Scope) join() bool {
	for {
		s.Mu.Lock()
		dismissed := toDismissLocked(s)
		switch {
		case s.Live == 0:
			s.Mu.Unlock()
			return true
		case len(dismissed) > 0: // also if they are left behind then
			// Marked before they are cancelled: another look must not find them.
			s.dismissed = true
			for _, d := range dismissed {
				d.More.dismissed = true
			}
			s.Mu.Unlock()
			s.Home.dismissAll(dismissed)
		case mayLeaveLocked(s):
			s.Mu.Unlock()
			return false
		default:
			// Not the scope's own waiter: a bare goroutine that uses our ctx may hold that. The
			// slot is lent under the lock, or what waits for it could start between, and go before
			// those whose wait is over. A scope that was left behind lends none: it would be that
			// of the caller, who has gone on.
			w := waiters.Get().(*Waiter)
			if w.Slot = nil; !s.leftTasks.Load() {
				s.Task.LendSlot(w)
			}
			s.joiner = w
			s.Mu.Unlock()
			got := w.Park()
			s.Mu.Lock()
			s.joiner = nil // from here on nobody notifies w, which can be used for another wait
			s.Mu.Unlock()
			w.takeSlotBack(got)
			w.recycle(s, false, true)
		}
	}
}

// toDismissLocked returns the daemons and groups that are to be told that s is done:
// once nobody else is left, those that were not told yet. Each is told once: one
// that is about to leave can not be cancelled any more, and shows no sign of it.
func toDismissLocked(s *Scope) []*Task {
	if s.Live == 0 || s.Live > s.dismissible {
		return nil
	}
	return childrenLocked(s, func(t *Task) bool {
		return t.IsDismissible() && !t.More.dismissed
	})
}

// Leave ends t's membership of its owner: the last thing a task does but for giving up its slot.
func (t *Task) Leave() {
	t.Owner.Leave(t)
	t.Retire()
}

// dismissAll dismisses tasks one after another.
func (r *Root) dismissAll(tasks []*Task) {
	r.walks.Add(1)
	defer r.walks.Add(-1)
	for _, t := range tasks {
		t.dismiss()
	}
}

// dismiss tells t, a daemon or a group, that the owner's other tasks have ended. If the
// owner was cancelled, its cause is the reason, though that may not have come as far as t
// yet: a standard context tells those below it one after another, and some have gone on
// by then.
func (t *Task) dismiss() {
	stop := t.stoppedFromAbove()
	g, gathers := t.Self.(gathering)
	if stop == nil {
		stop = Canceled(ErrDismissed)
		if gathers && t.Stopped() == nil {
			g.Dismissing() // before the cancel: g may have ended after it
		}
	}
	t.Scope().Cancel(stop)
	if gathers {
		g.Close()
	}
}

// IsDismissible reports whether t does not keep its owner from ending: the owner
// dismisses t when only such members are left.
func (t *Task) IsDismissible() bool {
	return t.More != nil && (t.More.Daemon || t.Kind == KindGroup)
}

// Leads reports whether t is a leader.
func (t *Task) Leads() bool { return t.More != nil && t.More.Leader }

// lead is called when the leader t has ended without a failure, and is still a
// member of its owner. Several leaders may come at a time: the first leads, unless
// something else has cancelled the owner before. The owner is noted as led first:
// whoever sees the cancellation finds that.
func (t *Task) lead() {
	s := t.Owner
	if s.Task.Kind == KindRoot || s.Task.Stopped() != nil {
		return
	}
	s.Mu.Lock()
	leads := !t.More.dismissed && !s.led
	s.led = s.led || leads
	s.Mu.Unlock()
	if leads && !s.Cancel(Canceled(ErrDismissed)) {
		s.Mu.Lock()
		s.led = false
		s.Mu.Unlock()
	}
}

// IsPlain reports whether a task that is started in s with nothing of its own needs nothing.
func (s *Scope) IsPlain() bool { return s.Limit == nil && s.Observers == nil && s.On == nil }
