package async

import (
	"fmt"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async/internal/crash"
	"github.com/ambit-go/ambit/async/internal/echo"
)

// This file makes the texts of errors. What they have in common: the package
// comes first, then the name of the scope or task, each once; of several errors
// the first stands on the first line and the others below, each indented.

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
		for _, of := range []string{" of ", " in "} { // a hook of it, or a panic in it
			if short, its := strings.CutSuffix(what, of+name); its {
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
