package async

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strings"
)

// This file makes the stack that a PanicError shows: that of the code that has
// panicked, without what this package and the runtime have on it.

// ownFrames is what the names of this package's functions begin with, and not
// those of its tests. Its internal cores are part of it.
const (
	ownFrames   = "github.com/ambit-go/ambit/async."
	innerFrames = "github.com/ambit-go/ambit/async/internal/"
)

// panicStack returns the stack of the goroutine, as [debug.Stack] does, from
// the function that has panicked on. It is called while the panic is being recovered, or
// by a function that is deferred when runtime.Goexit runs.
func panicStack() []byte { return usersStack(debug.Stack()) }

// usersStack takes from a stack all above the last panic, and the frames of this
// package: a user looks for his own, and where this package has panicked because
// it was misused the first of those is where. A stack of which nothing would be
// left is returned as it is.
func usersStack(stack []byte) []byte {
	head, rest, found := bytes.Cut(stack, []byte("\n"))
	if !found {
		return stack
	}
	frames := splitFrames(string(rest))
	for i, f := range frames {
		if strings.HasPrefix(f, "panic(") {
			frames = frames[i+1:]
			break
		}
	}
	for len(frames) > 0 && strings.HasPrefix(frames[0], "runtime.") { // of a nil dereference and the like
		frames = frames[1:]
	}
	var users strings.Builder
	for _, f := range frames {
		if name := strings.TrimPrefix(f, "created by "); !strings.HasPrefix(name, ownFrames) && !strings.HasPrefix(name, innerFrames) {
			users.WriteString(f)
		}
	}
	if users.Len() == 0 {
		return stack
	}
	return append(append(head, '\n'), users.String()...)
}

// raisedBelow reports whether the panic that is being recovered was raised by a
// Scope, or by a function that was deferred below one and has recovered such a
// panic: until a recovery is over, the frames that the panic came from are on the
// stack.
func raisedBelow() bool {
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) { // most often it is among the first
		n := runtime.Callers(skip, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var f runtime.Frame
			if f, more = frames.Next(); f.Function == ownFrames+"(*bodyRun).raise" {
				return true
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}

// splitFrames splits a stack, without its first line, into frames of two lines
// each: a function, and where it stands.
func splitFrames(stack string) (frames []string) {
	for _, line := range strings.SplitAfter(stack, "\n") {
		if n := len(frames); n > 0 && strings.HasPrefix(line, "\t") {
			frames[n-1] += line
		} else if line != "" {
			frames = append(frames, line)
		}
	}
	return frames
}
