package tree

import (
	"fmt"
	"os"
	"strings"

	"github.com/ambit-go/ambit/async/internal/crash"
)

// This file is about roots, which own what no scope owns: top scopes, root tasks, detached
// tasks and stragglers.

func init() {
	process.open()
	endedScope.Task, endedScope.Home, endedScope.from, endedScope.Ended = new(Task), process, &nowhere, true
	endedScope.Task.Inner.Store(endedScope)
	endedScope.Why.Store(endedStop)
}

func (r *Root) open() {
	r.t.Kind = KindRoot
	r.Scope.Task, r.Scope.Home, r.Scope.from = &r.t, r, r.t.origin()
	r.t.Inner.Store(&r.Scope)
}

// live returns the names of what is registered at r. A task that is done has given its outcome, perhaps to the caller,
// and is about to leave; a scope that has returned without its tasks has been registered in its place by then.
func (r *Root) live() []string {
	all := r.members(func(t *Task) bool { return t.State.Load() != StateDone })
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name()
	}
	return names
}

// members returns what is registered at r, and what is in its top in place of that, if is says so. The
// top is looked at first: a scope that returns without its tasks is registered at r
// before it is done and leaves the top, so it is found at one of the two.
func (r *Root) members(is func(*Task) bool) []*Task {
	inTop := r.membersOf(r.Top, is)
	r.Scope.Mu.Lock()
	defer r.Scope.Mu.Unlock()
	return append(childrenLocked(&r.Scope, func(t *Task) bool { return t != r.Top && is(t) }), inTop...)
}

// membersOf returns what is in t, which may be nil, if is says so.
func (r *Root) membersOf(t *Task, is func(*Task) bool) []*Task {
	if t == nil {
		return nil
	}
	s := t.Scope()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return childrenLocked(s, is)
}

// ProcessRoot returns the task that is the root of contexts that carry none.
func ProcessRoot() *Task { return &process.t }

// Task returns the task that r is as a node of the tree.
func (r *Root) Task() *Task { return &r.t }

// OwnerOf returns the scope that what is started under t belongs to; that of
// the process if t is nil.
func OwnerOf(t *Task) *Scope {
	if t == nil {
		return &process.Scope
	}
	return t.Scope()
}

// reportOf is Report for the error of a future that nobody was given: it says of
// which task it is.
func (r *Root) reportOf(task string, err error) {
	if Codec.PanicIn(err) == nil { // else it says that itself
		err = (&Listing{Scope: task, Errs: []error{err}}).asError()
	}
	r.Report(err)
}

// Report tells the root's handler of an error that nobody else can be told.
func (r *Root) Report(err error) {
	if r.lost != nil {
		r.lost(err)
		return
	}
	text := strings.TrimPrefix(crash.Text(err), "async: ")
	fmt.Fprintf(os.Stderr, "async: nobody was given this error: %s\n", text)
}

// Said tells the root what a task said as it was stopped, if there is no error to
// hold that.
func (r *Root) Said(text string) {
	text = strings.ReplaceAll(text, "\n\t", "; ")
	if r.text != nil {
		r.text(text)
		return
	}
	fmt.Fprintln(os.Stderr, text)
}

// wake has all waits for a change at r look again.
func (r *Root) wake() {
	r.Scope.Mu.Lock()
	wakeLocked(&r.Scope)
	r.Scope.Mu.Unlock()
}

// changeOf returns a channel that is closed when the next child of s leaves.
func changeOf(s *Scope) <-chan struct{} {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	r := SeldomLocked(s)
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// wakeLocked has those that wait for a change of s look again.
func wakeLocked(s *Scope) {
	if r := s.seldom; r != nil && r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// childrenLocked returns the children that f picks, in the order they came. f must
// not call users' code: s is locked.
func childrenLocked(s *Scope, f func(*Task) bool) []*Task {
	var some []*Task
	for t := s.children; t != nil; t = t.next {
		if f(t) {
			some = append(some, t)
		}
	}
	// The list has the last one first.
	for i, j := 0, len(some)-1; i < j; i, j = i+1, j-1 {
		some[i], some[j] = some[j], some[i]
	}
	return some
}
