package async

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file dismisses daemons and groups when the other tasks of their owner have ended,
// and tells what that has cut off.

// dismiss tells t, a daemon or a group, that the owner's other tasks have ended. If the
// owner was cancelled, its cause is the reason, though that may not have come as far as t
// yet: a standard context tells those below it one after another, and some have gone on
// by then.
func (t *task) dismiss() {
	sg := t.stoppedFromAbove()
	g, isGroup := t.self.(*Group)
	if sg == nil {
		sg = canceled(ErrDismissed)
		if isGroup && t.stopped() == nil {
			g.s.mu.Lock()
			g.cutOff.dismissed = true // before the cancel: g may have ended after it
			g.s.mu.Unlock()
		}
	}
	t.scope().cancel(sg)
	if isGroup {
		g.close()
	}
}

// isDismissible reports whether t does not keep its owner from ending: the owner
// dismisses t when only such members are left.
func (t *task) isDismissible() bool {
	return t.more != nil && (t.more.daemon || t.kind == kindGroup)
}

// noteCutOff notes that t, which has ended with v, only repeats why it was
// cancelled, in case the owner of t is a group that was dismissed.
func noteCutOff(t *task, v *verdict) {
	s := t.owner
	g, isGroup := s.t.self.(*Group)
	if !isGroup || !tally.Same(v.cause, ErrDismissed) {
		return
	}
	name := t.name()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(g.cutOff.tasks) < maxListed {
		g.cutOff.tasks = append(g.cutOff.tasks, name)
	} else {
		g.cutOff.more++
	}
}

// tellOwner writes to f, which is of g as it ends with v, what the owner is to know: its
// failures, and the tasks that the owner's end has cut off. Who waits for g is told v.
func (g *Group) tellOwner(v *verdict, f *tally.Fact) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	if f.Class == tally.Echo || !g.cutOff.dismissed || len(g.cutOff.tasks) == 0 && !v.echo {
		return
	}
	g.cutOff.group = g.f.t.name()
	f.CutOff, f.Texts = true, append(f.Texts, &g.cutOff)
	if v.echo {
		f.Class, f.Errs = tally.Echo, nil
	}
}

// watchAtRootLocked has the root told, after a time, of the failures so far of s, if s
// is a group at the root: such a group may last as long as the process.
func watchAtRootLocked(s *scope) {
	if s.t.kind != kindGroup || s.t.owner.t.kind != kindRoot || s.alarm != nil || s.t == s.home.top {
		return
	}
	s.alarm = time.AfterFunc(panicPatience, s.t.self.(*Group).report)
}

// report tells the root of the failures so far, unless somebody waits for g: then that
// call is given them.
func (g *Group) report() {
	g.f.mu.Lock()
	waited := g.f.settled() || g.f.awaitedLocked()
	g.f.mu.Unlock()
	g.s.mu.Lock()
	g.s.alarm = nil
	if waited || g.s.ended {
		g.s.mu.Unlock()
		return
	}
	sum := g.s.tally.Lost(unawaited).Sum(tally.End{})
	g.s.mu.Unlock()
	g.reportNew(listOf(&sum), sum.Dropped)
}

// reportNew tells the root of those of errs, all that have failed in g and that nobody was
// given, of which it was not told before. Of those that have been given since nothing is
// kept.
func (g *Group) reportNew(errs []error, dropped int) {
	g.s.mu.Lock()
	told := g.reported
	g.reported = slices.Clone(errs)
	g.s.mu.Unlock()
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool {
		return slices.ContainsFunc(told, func(told error) bool { return tally.Same(bare(told), bare(err)) })
	})
	if len(errs) > 0 {
		g.s.home.report(joined(&g.f.t, errs, dropped))
	}
}

// reportEnd tells the root how g has ended, which nobody was given. f is what an owner
// is told of that.
func (g *Group) reportEnd(f *tally.Fact) {
	errs, dropped, texts, textsDropped := f.Errs, f.Dropped, f.Texts, f.TextsDropped
	list, _ := f.Err.(*ScopeError)
	switch {
	case f.Class == tally.Panic:
		errs = append([]error{f.Err}, errs...)
	case len(errs) == 0 && list != nil && len(list.Errors) > 0:
		errs, dropped = list.Errors, list.Dropped
		texts, textsDropped = append(texts, list.Stopped...), textsDropped+list.DroppedStopped
	case len(errs) == 0:
		errs = []error{f.Err}
	}
	errs, _ = withPaths(errs)
	g.reportNew(errs, dropped)
	if len(texts)+textsDropped > 0 {
		g.s.home.said((&ScopeError{Scope: g.f.t.name(), Stopped: texts, DroppedStopped: textsDropped}).Error())
	}
}

// listOf returns all that sum tells, the panic first.
func listOf(sum *tally.Sum) []error {
	if sum.Panic == nil {
		errs, _ := withPaths(sum.Errs)
		return errs
	}
	errs, _ := withPaths(sum.Errs)
	return append([]error{sum.Panic}, errs...)
}

// A cutOffError says that the end of a scope has dismissed a group in which tasks ran
// that did not come to their end.
type cutOffError struct {
	group     string
	dismissed bool     // the owner's end has cancelled the group
	tasks     []string // at most 32
	more      int      // how many more there were
}

// Error names the group and the tasks.
func (e *cutOffError) Error() string {
	if len(e.tasks) == 0 {
		return prefix(e.group) + "dismissed before everything was done: stop a group, or wait for it"
	}
	names := strings.Join(e.tasks, ", ")
	if e.more > 0 {
		names += fmt.Sprintf(" and %d more", e.more)
	}
	return prefix(e.group) + "dismissed, which has cut off " + names + ": stop a group, or wait for it"
}

// Unwrap returns ErrDismissed.
func (e *cutOffError) Unwrap() error { return ErrDismissed }
