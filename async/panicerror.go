package async

import (
	"bytes"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
)

// A PanicError carries a panic from the goroutine it happened on to the one
// that is told. A [Scope] panics with it when a task of it has panicked; a future
// returns it. A panic of a body is not wrapped in one: it goes on as it was.
//
//	defer func() {
//		if p, ok := recover().(*async.PanicError); ok {
//			log.Printf("%s panicked: %v\n%s", p.Task, p.Value, p.Stack)
//		}
//	}()
//
// A PanicError is never changed. The context of the scope shows it as the cause as
// soon as the task has panicked; the scope raises a copy that has Also, and scopes
// further out pass that on. [errors.Is] matches one to the other. It also reaches
// Value, if that is an error, and nothing of Also.
//
// The text is one line. That of a panic which is raised has the stack and Also, because
// a crash prints nothing else; the verb %+v shows these always.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // the stack of the goroutine that panicked
	Task  string // the task, scope or hook that panicked

	// Also is what else went wrong in the scope that raised the panic, in the order in
	// which it came; at most 32 errors.
	Also []error

	dropped int       // how many more there were
	raised  bool      // a scope has panicked with it
	of      *onePanic // nil: not made by this package
}

// onePanic is what the copies of one panic have in common.
type onePanic struct {
	first    *PanicError
	observed atomicBool // the observers were told of it
	printed  atomicBool // it was printed, because it was not raised for long
}

// newPanicError returns what stands for a panic of task with value, which is just
// being recovered.
func newPanicError(task string, value any) *PanicError {
	p := &PanicError{Value: value, Stack: panicStack(), Task: task}
	p.of = &onePanic{first: p}
	return p
}

// isOurs reports whether e was made by this package for a panic.
func (e *PanicError) isOurs() bool { return e != nil && e.of != nil }

// raise returns what a scope panics with for e.
func (e *PanicError) raise() *PanicError {
	if e.raised || !e.isOurs() {
		return e
	}
	c := *e
	c.raised = true
	return &c
}

// returned returns what a future gives to a waiter for e.
func (e *PanicError) returned() *PanicError {
	if !e.raised {
		return e
	}
	c := *e
	c.raised = false
	return &c
}

// Error names the task and the value. If the panic was raised by a [Scope], the stack
// and what else went wrong follow.
func (e *PanicError) Error() string {
	switch {
	case e == nil:
		return nilText(e)
	case e.raised:
		return e.fullText()
	default:
		return e.line()
	}
}

// Format writes the text, with the verb %+v that with the stack and what else went
// wrong.
func (e *PanicError) Format(f fmt.State, verb rune) {
	switch {
	case e != nil && verb == 'v' && f.Flag('+'):
		_, _ = io.WriteString(f, e.fullText())
	case verb == 'q':
		_, _ = fmt.Fprintf(f, "%q", e.Error())
	default:
		_, _ = io.WriteString(f, e.Error())
	}
}

// line is the text of e in one line.
func (e *PanicError) line() string {
	return fmt.Sprintf("async: panic in %s: %s", e.Task, e.valueText())
}

func (e *PanicError) fullText() string {
	text := fmt.Sprintf("%s\n\n%s", e.line(), e.Stack)
	if len(e.Also) == 0 && e.dropped == 0 {
		return text
	}
	texts := []string{"beside it:"}
	for _, err := range e.Also {
		texts = append(texts, within(e.Task, err))
	}
	return strings.TrimRight(text, "\n") + "\n\n" + list(texts, e.dropped)
}

// Unwrap returns the value that was panicked with if it is an error.
func (e *PanicError) Unwrap() error {
	if e == nil || e.Value == error(e) {
		return nil
	}
	err, _ := e.Value.(error)
	return err
}

// Is reports whether target stands for the same panic: as its cause, or as what a
// scope has raised.
func (e *PanicError) Is(target error) bool {
	p, ok := target.(*PanicError)
	return ok && e.isOurs() && p.isOurs() && e.of == p.of
}

// valueText returns the text of the value, which users make.
func (e *PanicError) valueText() string {
	if p, ok := e.Value.(*PanicError); ok && p == e {
		return "itself"
	}
	return textOf(e.Value)
}

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
