package async

import (
	"fmt"
	"runtime"
	"strings"
)

// stragglers returns who is left of s.
func (s *scope) stragglers() *StragglerError {
	s.mu.Lock()
	left := s.childrenLocked(func(*task) bool { return true })
	s.mu.Unlock()
	var cause error
	if sg := s.t.stopped(); sg != nil {
		cause = stopped(sg.err, sg.cause)
	}
	return newStragglerError(s.t.name(), left, cause)
}

// newStragglerError names the tasks whose handlers run. A task that only waits
// for what it started is represented by that.
func newStragglerError(scope string, tasks []*task, cause error) *StragglerError {
	e := &StragglerError{Scope: scope, Cause: cause}
	var stacks []string
	for len(tasks) > 0 {
		t := tasks[0]
		tasks = tasks[1:]
		if h := t.half.Load(); h != nil && (t.kind == kindLeft || t.state.Load() == stateJoining) {
			h.mu.Lock()
			tasks = append(h.childrenLocked(func(*task) bool { return true }), tasks...)
			h.mu.Unlock()
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
// traceback prints.
func (t *task) stackIn(stacks []string) string {
	mark := fmt.Sprintf("(*task).main(%p)", t)
	for _, s := range stacks {
		if strings.Contains(s, mark) {
			return s
		}
	}
	return ""
}
