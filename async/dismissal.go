package async

// This file ends daemons and groups when the other tasks of their scope have ended, and a
// scope when its leader has.

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
