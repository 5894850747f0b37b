package async

import (
	"fmt"
	"runtime"
	"strings"
	"time"
	"weak"
)

// This file finds the stacks of tasks. Every look at all goroutines stops the
// world, so scopes that ask at about the same time share one.

// lookAge is for how long a look is good enough for a later question, if it took
// no time. A look that took long is good for longer: the world is stopped for a
// twentieth of the time at most.
const (
	lookAge   = 100 * time.Millisecond
	lookShare = 20
)

// A look is what one look at all goroutines has shown.
type look struct {
	number int64 // of the looks of this process
	at     time.Duration
	took   time.Duration
	all    []string          // the stacks
	ofTask map[string]string // by the address of the task, as a traceback prints it
}

// looks is the last look. Its lock is held while the world is stopped, and not
// while anybody waits for something else.
var looks struct {
	begun atomicInt64 // how many there were
	mu    mutex       // guards what follows
	size  int         // of the last one, in bytes
	last  weak.Pointer[look]
}

// lookFor returns a look that shows tasks, as far as they have a goroutine.
//
// A look that began after the question shows everything there is to be seen.
// One that is a little older will do if it shows all of tasks: then only what
// a task does at the moment may be out of date. That it is not the stack of an
// older task at the same address follows from the weak pointer: memory is given
// out again only after a collection, which takes the look, too.
func lookFor(tasks []*task) *look {
	asked := looks.begun.Load()
	looks.mu.Lock()
	defer looks.mu.Unlock()
	l := looks.last.Value()
	if l == nil || l.number <= asked && !(l.fresh() && l.shows(tasks)) {
		l = takeLook()
		looks.last = weak.Make(l)
	}
	return l
}

// takeLook stops the world and looks at all goroutines. looks.mu is held.
func takeLook() *look {
	l := &look{number: looks.begun.Add(1), at: clock(), ofTask: make(map[string]string)}
	l.all = allStacks()
	for _, stack := range l.all {
		l.keepStack(stack, "async.(*task).main(", 0)    // the receiver
		l.keepStack(stack, "async.(*bodyRun).call(", 1) // the task of a body
	}
	l.took = clock() - l.at
	return l
}

// keepStack remembers stack as that of the tasks whose address is argument n of a
// function in it. A traceback prints the arguments.
func (l *look) keepStack(stack, function string, n int) {
	for _, rest, found := strings.Cut(stack, function); found; _, rest, found = strings.Cut(rest, function) {
		args, _, _ := strings.Cut(rest, ")")
		list := strings.SplitN(args, ", ", n+2)
		if len(list) <= n {
			continue
		}
		l.ofTask[list[n]] = stack // one with a question mark is out of date, and no task's
	}
}

// fresh reports whether l is good enough for a question now. In a synctest bubble
// it is asked on another clock than outside; that is years behind.
func (l *look) fresh() bool {
	age := clock() - l.at
	return age >= 0 && age <= max(lookAge, lookShare*l.took)
}

func (l *look) shows(tasks []*task) bool {
	for _, t := range tasks {
		if l.stackOf(t) == "" {
			return false
		}
	}
	return true
}

// stackOf returns the stack of t's goroutine, "" if there was none.
func (l *look) stackOf(t *task) string { return l.ofTask[fmt.Sprintf("%p", t)] }

// stackWith returns the stack that has frame in it, "" if there was none.
func (l *look) stackWith(frame string) string {
	for _, stack := range l.all {
		if frame != "" && strings.Contains(stack, frame) {
			return stack
		}
	}
	return ""
}

// allStacks returns the stack of every goroutine. looks.mu is held.
func allStacks() []string {
	const most = 16 << 20
	for size := max(64<<10, looks.size+looks.size/4); ; size *= 2 {
		buf := make([]byte, min(size, most))
		n := runtime.Stack(buf, true)
		if looks.size = n; n < len(buf) || size >= most {
			return strings.Split(string(buf[:n]), "\n\n")
		}
	}
}
