package async

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
	endedScope.t, endedScope.home, endedScope.from, endedScope.ended = new(task), process, &nowhere, true
	endedScope.t.inner.Store(endedScope)
	endedScope.sig.Store(endedSignal)
}

func (r *root) open() {
	r.t.kind = kindRoot
	r.s.t, r.s.home, r.s.from = &r.t, r, r.t.origin()
	r.t.inner.Store(&r.s)
}

// live returns the names of what is registered at r.
func (r *root) live() []string {
	all := r.members()
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.name()
	}
	return names
}

// members returns what is registered at r, and what is in its top in place of that. The
// top is looked at first: a scope that returns without its tasks is registered at r
// before it leaves the top, so it is found at one of the two.
func (r *root) members() []*task {
	inTop := r.membersOf(r.top)
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return append(childrenLocked(&r.s, func(t *task) bool { return t != r.top }), inTop...)
}

// membersOf returns what is in t, which may be nil.
func (r *root) membersOf(t *task) []*task {
	if t == nil {
		return nil
	}
	s := t.scope()
	s.mu.Lock()
	defer s.mu.Unlock()
	return childrenLocked(s, func(*task) bool { return true })
}

// ownerOf returns the scope that what is started under t belongs to; that of
// the process if t is nil.
func ownerOf(t *task) *scope {
	if t == nil {
		return &process.s
	}
	return t.scope()
}

// reportOf is report for the error of a future that nobody was given: it says of
// which task it is.
func (r *root) reportOf(task string, err error) {
	if words.PanicIn(err) == nil { // else it says that itself
		err = (&listing{scope: task, errs: []error{err}}).asError()
	}
	r.report(err)
}

// report tells the root's handler of an error that nobody else can be told.
func (r *root) report(err error) {
	if r.lost != nil {
		r.lost(err)
		return
	}
	text := strings.TrimPrefix(crash.Text(err), "async: ")
	fmt.Fprintf(os.Stderr, "async: nobody was given this error: %s\n", text)
}

// said tells the root what a task said as it was stopped, if there is no error to
// hold that.
func (r *root) said(text string) {
	text = strings.ReplaceAll(text, "\n\t", "; ")
	if r.text != nil {
		r.text(text)
		return
	}
	fmt.Fprintln(os.Stderr, text)
}

// wake has all waits for a change at r look again.
func (r *root) wake() {
	r.s.mu.Lock()
	wakeLocked(&r.s)
	r.s.mu.Unlock()
}

// changeOf returns a channel that is closed when the next child of s leaves.
func changeOf(s *scope) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// wakeLocked has those that wait for a change of s look again.
func wakeLocked(s *scope) {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// childrenLocked returns the children that f picks, in the order they came. f must
// not call users' code: s is locked.
func childrenLocked(s *scope, f func(*task) bool) []*task {
	var some []*task
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
