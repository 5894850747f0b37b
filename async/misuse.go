package async

import (
	"runtime"
	"strings"
)

// This file says what was done wrong when this package is given nothing where it
// needs something.

// misuse returns the text of a panic in a function that users have called, whose
// name it finds on the stack: the outermost of this package before the caller's.
func misuse(text string) string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	called := ""
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		name, ours := strings.CutPrefix(f.Function, ownFrames)
		if !ours {
			break
		}
		called = name
	}
	name := exportedName(called)
	if name == "" || name[0] >= 'a' { // called by another package of ours
		name = ""
	}
	return prefix(name) + text
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

// mustNotBeNil panics if option is nil.
func mustNotBeNil(option any) {
	if option == nil {
		panic(misuse("an option is nil: leave it out instead"))
	}
}
