package service

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file is how a program says what has failed, once, before it ends.

// lastWords is how long the third signal waits for the standard error, to which who still
// drains and what has failed are to be written. It is written in a moment, unless nobody
// reads the standard error, or the text of an error hangs.
var lastWords = time.Second // a variable for tests

// note notes that a part of the program has failed with err, a service of the set of or, for nil, the whole, for
// the case that the program is ended before it can say so.
func (p *program) note(err error, of *set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !slices.ContainsFunc(p.noted, func(n noted) bool { return n.of == of }) {
		p.noted = append(p.noted, noted{err, of})
	}
	if len(p.noted) <= maxRemarks {
		return
	}
	// Runs in services that go on may fail again and again: the oldest of these is forgotten, or else the
	// oldest of all, whose caller has gone on.
	i := slices.IndexFunc(p.noted, func(n noted) bool { return n.of != nil && n.of.parent != nil })
	p.noted = slices.Delete(p.noted, max(i, 0), max(i, 0)+1)
}

// A noted is the first failure of a set, or of the whole program: then it is of nil.
type noted struct {
	err error
	of  *set
}

// isIn reports whether n is of a Run in m.
func (n noted) isIn(m *member) bool {
	for s := n.of; s != nil && s.parent != nil; s = s.parent.set {
		if s.parent == m {
			return true
		}
	}
	return false
}

// mended forgets what was noted of a Run in m, which is called again: what had failed there is not why the program
// ends.
func (p *program) mended(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noted = slices.DeleteFunc(p.noted, func(n noted) bool { return n.isIn(m) })
}

// sayFailure says what was noted, and waits for who says that already.
func (p *program) sayFailure() {
	p.mu.Lock()
	said, mine := p.said, false
	var err error
	if len(p.noted) > 0 {
		err = p.noted[0].err
		said, mine = p.saysLocked()
	}
	p.mu.Unlock()
	if mine {
		write(err)
		close(said)
	} else if said != nil {
		<-said
	}
}

// say writes an error to the standard error.
func (p *program) say(err error) {
	p.mu.Lock()
	said, first := p.saysLocked()
	p.mu.Unlock()
	write(err)
	if first {
		close(said)
	}
}

// saysLocked notes that somebody is about to say what has failed. The first is to close
// said when that is done.
func (p *program) saysLocked() (said chan struct{}, first bool) {
	if first = p.said == nil; first {
		p.said = make(chan struct{})
	}
	return p.said, first
}

func write(err error) { writeText(textOf(err)) }

// writeText writes to the standard error, after the name of the program.
func writeText(text string) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", filepath.Base(os.Args[0]), strings.TrimRight(text, "\n"))
}

// textOf returns the text of an error or of what was panicked with. A method of the error
// may panic.
func textOf(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T, whose text panics", value)
		}
	}()
	if err, ok := value.(error); ok {
		return err.Error()
	}
	return fmt.Sprint(value)
}

// A crash is a panic that has come up to Main.
type crash struct {
	value any
	stack []byte
}

// Unwrap returns what was panicked with, if it is an error.
func (c *crash) Unwrap() error {
	err, _ := c.value.(error)
	return err
}

// Error tells what was panicked with, and the stack of the goroutine that has
// panicked.
func (c *crash) Error() string {
	if p, ok := c.value.(*async.PanicError); ok {
		return textOf(withStack{p})
	}
	return fmt.Sprintf("panic: %s\n\n%s", textOf(c.value), c.stack)
}

// withStack is the text of a panic with the stack that it has.
type withStack struct{ p *async.PanicError }

func (w withStack) String() string { return fmt.Sprintf("%+v", w.p) }

// ExitStatus returns that of a program of Go that has panicked.
func (c *crash) ExitStatus() int { return statusPanic }
