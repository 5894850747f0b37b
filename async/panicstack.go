package async

import (
	"bytes"
	"runtime/debug"
	"slices"
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
	for i := slices.IndexFunc(frames, isPanic); i >= 0; {
		frames = frames[i+1:]
		// A panic that a scope has raised again goes on where it was raised first.
		i = slices.IndexFunc(frames, func(f string) bool { return !isOwn(f) })
		if i >= 0 && !isPanic(frames[i]) {
			break
		}
	}
	for len(frames) > 0 && strings.HasPrefix(frames[0], "runtime.") { // of a nil dereference and the like
		frames = frames[1:]
	}
	var users strings.Builder
	for _, f := range frames {
		if !isOwn(strings.TrimPrefix(f, "created by ")) {
			users.WriteString(f)
		}
	}
	if users.Len() == 0 {
		return stack
	}
	return append(append(head, '\n'), users.String()...)
}

func isPanic(frame string) bool { return strings.HasPrefix(frame, "panic(") }

func isOwn(frame string) bool {
	return strings.HasPrefix(frame, ownFrames) || strings.HasPrefix(frame, innerFrames)
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
