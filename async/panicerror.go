package async

import (
	"fmt"
	"io"
	"strings"

	"github.com/ambit-go/ambit/async/internal/crash"
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

	record *panicRecord // nil: not made by this package
}

// Error names the task and the value. If the panic was raised by a [Scope], the stack
// and what else went wrong follow.
func (e *PanicError) Error() string {
	switch {
	case e == nil:
		return nilText(e)
	case e.record != nil && e.record.raised:
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
	dropped := 0
	if e.record != nil {
		dropped = e.record.dropped
	}
	if len(e.Also) == 0 && dropped == 0 {
		return text
	}
	texts := []string{"beside it:"}
	for _, err := range e.Also {
		texts = append(texts, within(e.Task, err))
	}
	return strings.TrimRight(text, "\n") + "\n\n" + list(texts, dropped)
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
	return e != nil && e.record != nil && e.record.is(target)
}

// valueText returns the text of the value, which users make.
func (e *PanicError) valueText() string {
	if p, ok := e.Value.(*PanicError); ok && p == e {
		return "itself"
	}
	return crash.Text(e.Value)
}
