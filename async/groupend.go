package async

import (
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file tells the owner of a group, or the root, what has failed in the group, and what
// the end of the owner has cut off.

func (g *grouping) run()            {}
func (g *grouping) unrun(*verdict)  {}
func (g *grouping) fn() any         { return "group" }
func (g *grouping) future() *future { return &g.f }

// tellOwner writes to f, which is of the end of g, what the owner is to know: its
// failures, and the tasks that the owner's end has cut off. Who waits for g is told all.
// echo: g only repeats why it was cancelled.
func (g *grouping) tellOwner(echo bool, f *tally.Fact) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	if f.Class == tally.Echo || !g.cut.dismissed || len(g.cut.tasks) == 0 && !echo {
		return
	}
	g.cut.group = g.f.t.name()
	f.CutOff, f.Texts = true, append(f.Texts, &g.cut)
	if echo {
		f.Class, f.Errs = tally.Echo, nil
	}
}

// report tells the root of the failures so far, unless somebody waits for g: then that
// call is given them.
func (g *grouping) report() {
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
func (g *grouping) reportNew(errs []error, dropped int) {
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

// tellRoot tells the root how g has ended, which nobody was given. f is what an owner
// is told of that.
func (g *grouping) tellRoot(f *tally.Fact) {
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

// dismissing notes that the owner of g dismisses it, and nobody has stopped it before.
func (g *grouping) dismissing() {
	g.s.mu.Lock()
	g.cut.dismissed = true
	g.s.mu.Unlock()
}

// cutOff notes that task was kept from being done by the dismissal of g.
func (g *grouping) cutOff(task string) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	if len(g.cut.tasks) < tally.Max {
		g.cut.tasks = append(g.cut.tasks, task)
	} else {
		g.cut.more++
	}
}

// failedLocked has the root told, after a time, of the failures so far of g, if g is at
// the root: such a group may last as long as the process.
func (g *grouping) failedLocked() {
	s := &g.s
	if s.t.owner.t.kind != kindRoot || s.alarm != nil || s.t == s.home.top {
		return
	}
	s.alarm = time.AfterFunc(panicPatience, g.report)
}
