// Package crash is about panics of users: where they were, what the value says, and panics of
// our own that tell of a misuse. The frames of package async, which nobody who looks for his
// own wants to see, are left out of all of them.
package crash

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// ownFrames is what the names of the functions of package async begin with, and not
// those of its tests. Its internal packages are part of it.
const (
	ownFrames   = "github.com/ambit-go/ambit/async."
	innerFrames = "github.com/ambit-go/ambit/async/internal/"
)

// Stack returns the stack of the goroutine, as [debug.Stack] does, from
// the function that has panicked on. It is called while the panic is being recovered, or
// by a function that is deferred when runtime.Goexit runs.
func Stack() []byte { return usersStack(debug.Stack()) }

// usersStack takes from a stack all above the last panic, and the frames of package
// async: a user looks for his own, and where the package has panicked because
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

// Text returns the text of a value that somebody has panicked with, which
// may be anything: also one whose text cannot be made without another panic.
func Text(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T, whose text panics", value)
		}
	}()
	return fmt.Sprint(value)
}

// Misuse returns the text of a panic in a function that users have called, whose
// name it finds on the stack: the outermost of package async before the caller's.
func Misuse(text string) string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	called := ""
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.HasPrefix(f.Function, innerFrames) {
			continue
		}
		name, ours := strings.CutPrefix(f.Function, ownFrames)
		if !ours {
			break
		}
		called = name
	}
	name := exportedName(called)
	if name == "" || name[0] >= 'a' { // called by another package of ours
		return "async: " + text
	}
	return "async: " + name + ": " + text
}

// exportedName returns what users call a function: without type parameters, the
// package and the functions inside it.
func exportedName(function string) string {
	if method, ok := strings.CutPrefix(function, "(*"); ok {
		typ, name, _ := strings.Cut(method, ").")
		typ, _, _ = strings.Cut(typ, "[")
		name, _, _ = strings.Cut(name, ".")
		return typ + "." + name
	}
	if i := strings.IndexAny(function, "[."); i >= 0 {
		function = function[:i]
	}
	return function
}
