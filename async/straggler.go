package async

import (
	"fmt"
	"runtime"
	"strings"
)

// stragglers returns who is left of s: its own body, too, if that still runs.
func (s *scope) stragglers() *StragglerError {
	s.mu.Lock()
	left := s.childrenLocked(func(*task) bool { return true })
	s.mu.Unlock()
	if s.t.kind == kindBody && s.t.state.Load() == stateRunning {
		left = append(left, s.t)
	}
	var cause error
	if sg := s.t.stopped(); sg != nil {
		cause = sg.told()
	}
	return newStragglerError(s, left, cause)
}

// newStragglerError names the tasks of s, and of those, whose handlers run. A
// task that only waits for what it started, or never had a handler, is
// represented by that.
func newStragglerError(s *scope, tasks []*task, cause error) *StragglerError {
	e := &StragglerError{Scope: s.t.name(), Cause: cause}
	var stacks []string
	for len(tasks) > 0 {
		t := tasks[0]
		tasks = tasks[1:]
		runs := t.state.Load() < stateJoining && t.kind != kindLeft && t.kind != kindFork
		if h := t.inner.Load(); h != nil && h != s && h != endedScope {
			h.mu.Lock()
			tasks = append(h.childrenLocked(func(*task) bool { return true }), tasks...)
			h.mu.Unlock()
		}
		if !runs {
			continue
		}
		if len(e.Left) == maxListed {
			e.More++
			continue
		}
		if stacks == nil {
			stacks = allStacks()
		}
		e.Left = append(e.Left, Straggler{Task: t.name(), State: t.public(), Stack: t.stackIn(stacks)})
	}
	return e
}

// allStacks returns the stack of every goroutine.
func allStacks() []string {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || len(buf) >= 16<<20 {
			return strings.Split(string(buf[:n]), "\n\n")
		}
		buf = make([]byte, 2*len(buf))
	}
}

// stackIn finds the stack of t's goroutine by the receiver of main, which a
// traceback prints, or by the task of a body, which is the first argument.
func (t *task) stackIn(stacks []string) string {
	mark, at := "(*task).main(", fmt.Sprintf("(*task).main(%p)", t)
	if t.kind == kindBody {
		mark, at = "(*bodyRun).call(", fmt.Sprintf(", %p,", t)
	}
	for _, s := range stacks {
		if strings.Contains(s, mark) && strings.Contains(s, at) {
			return s
		}
	}
	return ""
}

// abandon ends the wait of a scope whose DetachAfter has passed. What is left
// of it is registered at the root until the last of it ends.
func (s *scope) abandon(err error, echo bool, v *verdict) {
	e := s.stragglers()
	stand := &task{kind: kindLeft, owner: &s.home.s, more: &more{shielded: true}}
	stand.more.name = s.t.name()
	stand.inner.Store(s)
	s.home.s.add(stand)

	s.takeUnclaimed()
	s.sum(err, echo, e, v)
	v.echo = false
	s.mu.Lock()
	s.told = v.err
	s.abandoned.Store(true)
	over := s.live == 0
	if !over {
		s.left = stand
	}
	if s.faults != nil { // told now
		for _, alarm := range s.faults.alarms {
			alarm.Stop()
		}
		s.faults = nil
	}
	s.mu.Unlock()
	if over { // the last one came home after all
		go s.bury(stand)
	}
}

// bury ends a scope that returned without its tasks, after the last of them.
func (s *scope) bury(stand *task) {
	s.takeUnclaimed()
	for s.runExits(nil, false) || !s.close() {
		s.join(false)
		s.takeUnclaimed()
	}
	var v verdict
	if s.verdict(nil, false, &v); v.err != nil && !v.echo {
		s.home.report(v.err)
	}
	s.home.s.leave(stand)
}
