package async

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async/internal/echo"

	"github.com/ambit-go/ambit/async/internal/crash"
	"github.com/ambit-go/ambit/async/internal/tree"
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
// The text is one line. The text of a panic that is raised has the stack and Also, because
// a crash prints nothing else; the verb %+v shows these always.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // the stack of the goroutine that panicked
	Task  string // the task, scope or hook that panicked

	// Also is what else went wrong in the scope that raised the panic, in the order in
	// which it came; at most 32 errors.
	Also []error

	record *tree.Panic // nil: not made by this package
}

// Error names the task and the value. If the panic was raised by a [Scope], the stack
// and what else went wrong follow.
func (e *PanicError) Error() string {
	switch {
	case e == nil:
		return nilText(e)
	case e.record != nil && e.record.Raised:
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
		dropped = e.record.Dropped
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
	return e != nil && e.record != nil && e.record.SameAs(target)
}

// valueText returns the text of the value, which users make.
func (e *PanicError) valueText() string {
	if p, ok := e.Value.(*PanicError); ok && p == e {
		return "itself"
	}
	return crash.Text(e.Value)
}

// prefix is what the text of an error of what is called name begins with.
func prefix(name string) string {
	if name == "" {
		return "async: "
	}
	return "async: " + name + ": "
}

// within returns the text of err as part of the text of an error of what is
// called name: neither the package nor that name is said again, and its lines
// after the first are indented.
func within(name string, err error) string {
	return withoutName(name, crash.Text(err))
}

// withoutName is within for a text.
func withoutName(name, text string) string {
	text = strings.TrimPrefix(text, prefix(name))
	if rest, ours := strings.CutPrefix(text, prefix("")); ours {
		text = strings.TrimPrefix(rest, name+"/") // a task of name without a name of its own
		what, rest, _ := strings.Cut(text, ": ")
		for _, joint := range []string{" of ", " in "} { // a hook of it, or a panic in it
			if short, its := strings.CutSuffix(what, joint+name); its {
				text = short + ": " + rest
			}
		}
	}
	return indented(text)
}

// indented indents all lines of text but the first.
func indented(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n\t")
}

// list returns texts one a line, and how many more there were.
func list(texts []string, more int) string {
	if more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "\n\t")
}

// nilText is the text of an error of ours that is nil: as of a function that
// declares its result as one of our types, and returns nil.
func nilText(err error) string {
	return prefix("") + "a nil " + strings.Replace(fmt.Sprintf("%T", err), "async.", "", 1)
}

// rounded returns d with three digits that count, so that what is short is not
// shown as nothing, and what is long not to the nanosecond.
func rounded(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 || d/unit <= -1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// counted returns "1 task", "2 tasks" and so on.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprint(n, " ", what, "s")
}

// mustNotBeNil panics if option is nil.
func mustNotBeNil(option any) {
	if option == nil {
		panic(crash.Misuse("an option is nil: leave it out instead"))
	}
}

// briefly is within without the stack of a panic.
func briefly(name string, err error) string {
	list, isList := err.(interface{ saysMore() bool })
	if p, _ := echo.As[*PanicError](err); p != nil && !(isList && list.saysMore()) {
		return withoutName(name, p.line())
	}
	return within(name, err)
}
