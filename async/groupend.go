package async

import (
	"context"
	"slices"
	"time"

	"github.com/ambit-go/ambit/internal/bridge"

	"github.com/ambit-go/ambit/async/internal/tally"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file tells the owner of a group, or the root, what has failed in the group, and what
// the end of the owner has cut off.

func (g *grouping) Run()                 {}
func (g *grouping) Unrun(*tree.Verdict)  {}
func (g *grouping) Func() any            { return "group" }
func (g *grouping) Future() *tree.Future { return &g.f }

// TellOwner writes to f, which is of the end of g, what the owner is to know: its
// failures, and the tasks that the owner's end has cut off. Who waits for g is told all.
// echo: g only repeats why it was cancelled.
func (g *grouping) TellOwner(echo bool, f *tally.Fact) {
	g.s.Mu.Lock()
	defer g.s.Mu.Unlock()
	if f.Class == tally.Echo || !g.cut.dismissed || len(g.cut.tasks) == 0 && !echo {
		return
	}
	g.cut.group = g.f.Task.Name()
	f.CutOff, f.Texts = true, append(f.Texts, &g.cut)
	if echo {
		f.Class, f.Errs = tally.Echo, nil
	}
}

// report tells the root of the failures so far, unless somebody waits for g: then that
// call is given them.
func (g *grouping) report() {
	g.f.Mu.Lock()
	waited := g.f.Settled() || g.f.AwaitedLocked()
	g.f.Mu.Unlock()
	g.s.Mu.Lock()
	tree.SeldomLocked(&g.s).Alarm = nil
	if waited || g.s.Ended {
		g.s.Mu.Unlock()
		return
	}
	sum := g.s.Tally.Lost(tree.Unawaited).Sum(tally.End{})
	g.s.Mu.Unlock()
	g.reportNew(listOf(&sum), sum.Dropped)
}

// reportNew tells the root of those of errs, all that have failed in g and that nobody was
// given, of which it was not told before. Errors that have been given since are not kept.
func (g *grouping) reportNew(errs []error, dropped int) {
	g.s.Mu.Lock()
	told := g.reported
	g.reported = slices.Clone(errs)
	g.s.Mu.Unlock()
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool {
		return slices.ContainsFunc(told, func(told error) bool { return tally.Same(tree.Bare(told), tree.Bare(err)) })
	})
	if len(errs) > 0 {
		g.s.Home.Report(tree.Joined(&g.f.Task, errs, dropped))
	}
}

// TellRoot tells the root how g has ended, which nobody was given. f is what an owner
// is told of that.
func (g *grouping) TellRoot(f *tally.Fact) {
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
	errs, _ = tree.WithPaths(errs)
	g.reportNew(errs, dropped)
	if len(texts)+textsDropped > 0 {
		g.s.Home.Said((&ScopeError{Scope: g.f.Task.Name(), Stopped: texts, DroppedStopped: textsDropped}).Error())
	}
}

// listOf returns all that sum tells, the panic first.
func listOf(sum *tally.Sum) []error {
	if sum.Panic == nil {
		errs, _ := tree.WithPaths(sum.Errs)
		return errs
	}
	errs, _ := tree.WithPaths(sum.Errs)
	return append([]error{sum.Panic}, errs...)
}

// Dismissing notes that the owner of g dismisses it, and nobody has stopped it before.
func (g *grouping) Dismissing() {
	g.s.Mu.Lock()
	g.cut.dismissed = true
	g.s.Mu.Unlock()
}

// CutOff notes that task was kept from being done by the dismissal of g.
func (g *grouping) CutOff(task string) {
	g.s.Mu.Lock()
	defer g.s.Mu.Unlock()
	if len(g.cut.tasks) < tally.Max {
		g.cut.tasks = append(g.cut.tasks, task)
	} else {
		g.cut.more++
	}
}

// FailedLocked has the root told, after a time, of the failures so far of g, if g is at
// the root: such a group may last as long as the process.
func (g *grouping) FailedLocked() {
	s := &g.s
	if s.Task.Owner.Task.Kind != tree.KindRoot || s.Task == s.Home.Top {
		return
	}
	if r := tree.SeldomLocked(s); r.Alarm == nil {
		r.Alarm = time.AfterFunc(tree.PanicPatience, g.report)
	}
}

func init() { bridge.OpenTop = openTop }

// openTop opens the top of a root. It is called before anything else is done with
// the root.
func openTop(ctx context.Context) (context.Context, func(context.Context) error) {
	g := NewGroup(ctx)
	g.f.Task.Owner.Home.Top = &g.f.Task
	return g.Context(), g.Wait
}
