package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/picture"
)

// This file names the services that a stop has not ended: in the error of a drain that
// was cut short, and at the third signal.

// maxTasks is how many tasks of a service an error names, on its one line.
const maxTasks = 5

// overruns returns what to say of the services of s that have not ended, with "; " before
// it: who drains, for how long, what runs in there, and who was not told to stop, as the
// time was over before. It says nothing if all have ended.
func (s *set) overruns() string {
	var draining, waiting []string
	for _, m := range s.running() {
		if m.now().since.IsZero() {
			waiting = append(waiting, m.label)
		} else {
			draining = append(draining, m.drains()+m.runs())
		}
	}
	return clause("; still draining: ", draining) + clause("; not told before: ", waiting)
}

// clause returns the parts behind intro, and nothing if there are none.
func clause(intro string, parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return intro + strings.Join(parts, ", ")
}

// running returns the services that were started and have not ended, in the order of their
// turns to stop. Any goroutine may ask.
func (s *set) running() (left []*member) {
	for _, m := range slices.Backward(s.members) {
		if now := m.now(); now.all != nil && !now.over {
			left = append(left, m)
		}
	}
	return left
}

// drains names m, and says for how long it drains.
func (m *member) drains() string {
	return fmt.Sprintf("%s for %v", m.label, time.Since(m.now().since).Round(time.Millisecond))
}

// runs names the tasks of m that run, in parentheses.
func (m *member) runs() string {
	names, more := m.tasks()
	if n := len(names) - maxTasks; n > 0 {
		names, more = names[:maxTasks], more+n
	}
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return " (" + text + ")"
}

// tasks returns the names of the tasks of m that run, and how many more there are. It only looks: a group that is
// asked by a wait who is left in it tells daemons and groups in it to go.
func (m *member) tasks() (names []string, more int) {
	tree := async.Snapshot(async.Of(m.now().all.Context()))
	own, idle := int64(0), map[int64]bool{} // the scope of m.own; scopes of daemons that nobody has told to go
	for i, n := range tree.Nodes {
		switch {
		case i == 1 && n.Kind == picture.KindGroup: // the oldest of m.all, unless it has ended
			own = n.Scope
		case idle[n.ID.Scope], n.Daemon && n.Told == nil && n.Kind != picture.KindGroup && n.ID.Scope != own:
			idle[n.Scope] = n.Scope != 0 // they wait for the others
		case !isCode(n.Kind) || n.State == picture.StateJoining || n.State == picture.StateDone:
		case n.ID.Scope == own:
			names = append(names, "Run"+suffixes[n.State])
		case n.ID.Scope == tree.Nodes[0].Scope:
			names = append(names, "Drain"+suffixes[n.State])
		case n.State != picture.StateQueued:
			names = append(names, n.Name)
		}
	}
	for _, p := range tree.Parts {
		if p.Places > 0 && p.Active > 0 && !idle[p.Scope] {
			names = append(names, p.Name)
		}
	}
	for _, g := range tree.Groups {
		if isCode(g.Kind) && g.State == picture.StateRunning {
			more += g.Count
		}
	}
	return names, more
}

// suffixes say that a function of the Service does not run yet: a Limit or an executor has no place for it.
var suffixes = map[picture.State]string{picture.StateQueued: ": queued"}

// isCode reports whether a task of that kind is code of a user that runs, and not only an owner of such.
func isCode(kind picture.Kind) bool {
	switch kind {
	case picture.KindGroup, picture.KindLeft, picture.KindFork, picture.KindChoice, picture.KindPromise, picture.KindRun:
		return false
	}
	return true
}

// fieldOf returns the name of a task of m: if it is a function of the Service, the name of
// that.
func (m *member) fieldOf(task async.Straggler) string {
	switch task.Task {
	case m.label:
		return "Run"
	case m.label + drainSuffix:
		return "Drain"
	}
	return task.Task
}

// left returns the tasks of m that run, with stacks, and how many more there are. A group
// in there has no goroutine and is none. A wait that is over before it begins is how a
// group is asked. Such a wait is the end of its body, which tells daemons and groups in it to go: it is for the end
// of the process.
func (m *member) left() (tasks []async.Straggler, more int) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	var left *async.StragglerError
	if as(m.now().all.Wait(over), &left) {
		return slices.DeleteFunc(left.Left, func(l async.Straggler) bool { return l.Stack == "" }), left.More
	}
	return nil, 0
}

// as is errors.As for an error whose methods may panic.
func as[E error](err error, target *E) (found bool) {
	defer func() { _ = recover() }()
	return errors.As(err, target)
}

// enter has the third signal name what is left of s, until leave.
func (p *program) enter(s *set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets = append(p.sets, s)
}

// leave ends what enter has begun, and notes whether s has returned without its services.
func (p *program) leave(s *set) {
	gaveUp := len(s.running()) > 0
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets = slices.DeleteFunc(p.sets, func(other *set) bool { return other == s })
	if gaveUp {
		p.givenUp = append(p.givenUp, s)
	}
}

// sayOverruns says which services still drain at the third signal: first all names, which
// are known, and then what runs in each, with stacks, which takes a look.
func (p *program) sayOverruns(third *SignalError) {
	p.mu.Lock()
	sets := slices.Clone(p.sets)
	p.mu.Unlock()
	var draining []*member
	var names []string
	for _, s := range sets {
		for _, m := range s.running() {
			if !m.now().since.IsZero() {
				draining, names = append(draining, m), append(names, m.drains())
			}
		}
	}
	if len(draining) == 0 {
		return
	}
	writeText(fmt.Sprintf("the third signal, %v, ends what is still draining: %s", third.Signal, strings.Join(names, ", ")))
	for _, m := range draining {
		fmt.Fprint(os.Stderr, m.stacks())
	}
}

// stacks tells what runs in m, where.
func (m *member) stacks() string {
	var b strings.Builder
	left, more := m.left()
	for _, l := range left {
		fmt.Fprintf(&b, "\t%s: %s (%v)\n", m.label, m.fieldOf(l), l.State)
		if l.Stack != "" {
			fmt.Fprintf(&b, "\t\t%s\n", strings.ReplaceAll(strings.TrimSpace(l.Stack), "\n", "\n\t\t"))
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, "\t%s: and %d more\n", m.label, more)
	}
	return b.String()
}
