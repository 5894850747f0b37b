package async

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// process is the root of contexts that carry none. It has no context of its
// own, so nothing of one synctest bubble can be left in it for the next.
var process = new(root)

func init() {
	process.open()
	endedScope.t, endedScope.home, endedScope.from, endedScope.ended = new(task), process, &nowhere, true
	endedScope.t.inner.Store(endedScope)
	endedScope.sig.Store(endedSignal)
}

func newRoot(ctx context.Context, lost func(error), said func(string)) *root {
	r := &root{lost: lost, text: said}
	r.t.more = new(more)
	r.t.setOrigin(ctx)
	r.open()
	r.s.watch(ctx)
	return r
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
	return append(r.s.childrenLocked(func(t *task) bool { return t != r.top }), inTop...)
}

// membersOf returns what is in t, which may be nil.
func (r *root) membersOf(t *task) []*task {
	if t == nil {
		return nil
	}
	s := t.scope()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.childrenLocked(func(*task) bool { return true })
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
	if _, panicked := err.(*PanicError); !panicked { // else it says that itself
		err = &ScopeError{Scope: task, Errors: []error{err}}
	}
	r.report(err)
}

// report tells the root's handler of an error that nobody else can be told.
func (r *root) report(err error) {
	if r.lost != nil {
		r.lost(err)
		return
	}
	text := textOf(err)
	fmt.Fprintf(os.Stderr, "async: nobody was given this error: %s\n", strings.TrimPrefix(text, prefix("")))
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

// printLate prints a panic that has waited long for its scope to end.
func (r *root) printLate(p *PanicError, scope string, left *StragglerError) {
	r.report(fmt.Errorf("%w\nasync: this panic has waited %v to be raised by %s, which waits for: %v", p.raise(), panicPatience, scope, left))
}

// detachedEnded keeps the error of a detached task for Shutdown.
func (r *root) detachedEnded(v *verdict) {
	if v.err != nil {
		r.s.record(&tally.Fact{Err: v.err, GoesOn: true})
	}
}

// wake has all waits for a change at r look again.
func (r *root) wake() {
	r.s.mu.Lock()
	r.s.wakeLocked()
	r.s.mu.Unlock()
}

// panicPatience is how long a panic may wait to be raised again before it is
// printed.
const panicPatience = 10 * time.Second
