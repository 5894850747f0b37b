package async

// This file is what a scope owns: how members come and leave, how the scope waits for them,
// and how daemons, groups and leaders end it.

// add makes t a child of s. Registering, counting and the ended flag share
// one lock, so a task is either joined or refused.
//
// It is refused only when s has ended. In a scope that is cancelled a task still
// runs, so that one which must close a channel is never skipped.
func (s *scope) add(t *task) bool {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return false
	}
	s.linkLocked(t)
	s.mu.Unlock()
	return true
}

// linkLocked puts t on the list of s. A promise is not counted: s does not wait for
// it.
func (s *scope) linkLocked(t *task) {
	if exploring {
		born(t)
	}
	list := &s.children
	if t.kind == kindPromise {
		list = &s.promises
	} else {
		s.live++
		if t.isDismissible() {
			s.daemons++
			// The joiner may wait for daemons alone that it has dismissed.
			if s.dismissed && s.joiner != nil {
				s.joiner.release() // to tell t at once that s is done
			}
		}
	}
	if *list != nil {
		(*list).prev = t
	}
	t.next, *list = *list, t
}

// leave takes t off the list, and wakes the joiner if only daemons and groups are left,
// or nobody. It is the last thing that happens to t in s: when it has returned, s may
// have ended.
func (s *scope) leave(t *task) {
	s.mu.Lock()
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
	if t.kind != kindPromise {
		s.live--
		if t.isDismissible() {
			s.daemons--
		}
	}
	if s.joiner != nil && s.live <= s.daemons {
		s.joiner.release()
	}
	if s.changed != nil {
		wakeLocked(s)
	}
	if s.leftAtRoot != nil && s.live <= s.daemons {
		// leftAtRoot is taken under the lock, so that s is ended once. Exit hooks run there:
		// not on the goroutine of a task that has ended.
		go s.leftAtRoot.self.run()
		s.leftAtRoot = nil
	}
	s.mu.Unlock()
}

// join waits until everything started in s has ended. It reports false if
// DetachAfter has passed before.
//
// It looks again whenever its waiter is notified: there may be news that is none,
// as when a task left and another was started. Daemons are cancelled without the
// lock; what has changed meanwhile is seen at the next look.
func (s *scope) join() bool {
	for {
		s.mu.Lock()
		daemons := strayDaemonsLocked(s)
		switch {
		case s.live == 0:
			s.mu.Unlock()
			return true
		case len(daemons) > 0: // also if they are left behind then
			// Marked before they are cancelled: another look must not find them.
			s.dismissed = true
			for _, d := range daemons {
				d.more.dismissed = true
			}
			s.mu.Unlock()
			for _, d := range daemons {
				d.dismiss()
			}
		case mayLeaveLocked(s):
			s.mu.Unlock()
			return false
		default:
			s.mu.Unlock()
			parkJoiner(s)
		}
	}
}

// strayDaemonsLocked returns the daemons and groups that are to be told that s is done:
// once nobody else is left, those that were not told yet. Each is told once: one
// that is about to leave can not be cancelled any more, and shows no sign of it.
func strayDaemonsLocked(s *scope) []*task {
	if s.live == 0 || s.live > s.daemons {
		return nil
	}
	return childrenLocked(s, func(t *task) bool {
		return t.isDismissible() && !t.more.dismissed
	})
}

// parkJoiner waits until there may be news for join. The waiter is not the
// scope's parker: a bare goroutine that uses our ctx may hold that. What was left
// behind lends no slot: it would be that of the caller, who has gone on.
func parkJoiner(s *scope) {
	w := waiters.Get().(*waiter)
	// A task leaves under the lock: it did so before, and is seen here, or finds the
	// joiner. The slot is lent under it, too, or what waits for it could start between,
	// and go before those whose wait is over.
	s.mu.Lock()
	if s.live == 0 || mayLeaveLocked(s) || len(strayDaemonsLocked(s)) > 0 {
		s.mu.Unlock()
		w.recycle(s, false, true)
		return
	}
	if w.slot = nil; !s.abandoned.Load() {
		s.t.lendSlot(w)
	}
	s.joiner = w
	s.mu.Unlock()
	got := w.park()
	// Taken back under the lock under which it is notified: after this w can be used
	// for another wait.
	s.mu.Lock()
	s.joiner = nil
	s.mu.Unlock()
	w.takeSlotBack(got)
	w.recycle(s, false, true)
}

// leave ends t's membership of its owner: the last thing a task does.
func (t *task) leave() {
	t.owner.leave(t)
	t.retire()
}

// dismiss tells t, a daemon or a group, that the owner's other tasks have ended. If the
// owner was cancelled, its cause is the reason, though that may not have come as far as t
// yet: a standard context tells those below it one after another, and some have gone on
// by then.
func (t *task) dismiss() {
	sg := t.stoppedFromAbove()
	g, gathers := t.self.(gathering)
	if sg == nil {
		sg = canceled(ErrDismissed)
		if gathers && t.stopped() == nil {
			g.dismissing() // before the cancel: g may have ended after it
		}
	}
	t.scope().cancel(sg)
	if gathers {
		g.close()
	}
}

// isDismissible reports whether t does not keep its owner from ending: the owner
// dismisses t when only such members are left.
func (t *task) isDismissible() bool {
	return t.more != nil && (t.more.daemon || t.kind == kindGroup)
}

// leads reports whether t is a leader.
func (t *task) leads() bool { return t.more != nil && t.more.leader }

// lead is called when the leader t has ended without a failure, and is still a
// member of its owner. Several leaders may come at a time: the first leads, unless
// something else has cancelled the owner before. That the owner was led is noted first:
// whoever sees the cancellation finds that.
func (t *task) lead() {
	s := t.owner
	if s.t.kind == kindRoot || s.t.stopped() != nil {
		return
	}
	s.mu.Lock()
	leads := !t.more.dismissed && !s.led
	s.led = s.led || leads
	s.mu.Unlock()
	if leads && !s.cancel(canceled(ErrDismissed)) {
		s.mu.Lock()
		s.led = false
		s.mu.Unlock()
	}
}
