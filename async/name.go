package async

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/async/internal/tally"
)

// This file names tasks, for errors, events and lists of what is left, and failures by the
// tasks whose they are.

// name returns the name that was given to t, or that of its function.
func (t *task) name() string { return t.naming().in(t.owner) }

func (t *task) naming() (n naming) {
	switch {
	case t.more != nil && t.more.name != "":
		n.given = t.more.name
	case t.kind == kindRoot:
		n.own = "root"
	case t.kind == kindPromise:
		n.own = "promise"
	case t.self == nil:
		n.own = "scope"
	default:
		if v := reflect.ValueOf(t.self.fn()); v.Kind() == reflect.String {
			n.own = v.String()
		} else {
			n.pc = v.Pointer()
		}
	}
	return n
}

// in returns the name of a task that belongs to s.
func (n naming) in(s *scope) string {
	if n.given != "" {
		return n.given
	}
	own := n.own
	if n.pc != 0 {
		own = funcName(n.pc)
	}
	for ; s != nil; s = s.t.owner {
		if m := s.t.more; m != nil && m.name != "" {
			return m.name + "/" + own
		}
	}
	return own
}

// funcName returns the name of the function at pc without the path of its package.
func funcName(pc uintptr) string {
	name := runtime.FuncForPC(pc).Name()
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], "-fm")
}

// lateStart returns the error of late, which was started in t after t has ended.
func lateStart(t *task, late string) error {
	name := t.name()
	if t.kind == kindBody && (t.more == nil || t.more.name == "") {
		name += " (give it an async.Name to see which)"
	}
	return fmt.Errorf("%w: %s; too late for %s: start it with the ctx of a scope that lasts", errScopeEnded, name, late)
}

// nameFailure has f, of t, listed in the tally of the owner with the name that t was
// given, so that the text of a list says whose each failure is. Goexit, which says
// nothing else, is listed with the name of the function.
func nameFailure(t *task, f *tally.Fact) {
	n, s := t.naming(), t.owner
	if f.Err == nil || n.given == "" && f.Err != error(errGoexit) {
		return
	}
	f.As = &failureOf{f.Err, n, s}
	if f.Class != tally.Failure {
		return
	}
	errs := slices.Clone(f.Errs)
	for i, err := range errs {
		if _, named := err.(*failureOf); !named {
			errs[i] = &failureOf{err, n, s}
		}
	}
	f.Errs = errs
}

// failuresOf returns the errors of l, each with its task if that is known, for the tally of the
// scope around.
func failuresOf(l *listing) []error {
	if l.paths == nil {
		return l.errs
	}
	errs := slices.Clone(l.errs)
	for i, path := range l.paths {
		if path != "" {
			errs[i] = &failureOf{errs[i], naming{given: path}, nil}
		}
	}
	return errs
}

// A failureOf is a failure with the task whose it is. Only tallies hold one.
type failureOf struct {
	error
	task naming
	in   *scope
}

// withPaths returns errs as users are given them, and the names of their tasks.
func withPaths(errs []error) (given []error, paths []string) {
	for i, err := range errs {
		f, ok := err.(*failureOf)
		if !ok {
			continue
		}
		if paths == nil {
			given, paths = slices.Clone(errs), make([]string, len(errs))
		}
		given[i], paths[i] = f.error, f.task.in(f.in)
	}
	if paths == nil {
		return errs, nil
	}
	return given, paths
}

// withoutPath returns err as users are given it.
func withoutPath(err error) error {
	if f, ok := err.(*failureOf); ok {
		return f.error
	}
	return err
}

// bare returns the failure that err tells of, which is err itself unless it says that nobody
// awaited that: both are one failure. All copies of a panic are one, too.
func bare(err error) error {
	if f, ok := err.(*failureOf); ok {
		return bare(f.error)
	}
	if p := words.PanicIn(err); p != nil {
		return p.of.first
	}
	if _, failure, ok := words.UnawaitedIn(err); ok {
		return bare(failure)
	}
	return err
}

// listed returns the list of errors that v tells of, nil if it is none. If that is of
// a future that nobody awaited, each of its errors says so.
func (v *verdict) listed() *listing {
	task, failure, unawaited := words.UnawaitedIn(v.err)
	if !unawaited {
		return words.ListIn(v.err)
	}
	list := words.ListIn(bare(failure))
	if list == nil {
		return nil
	}
	each := make([]error, len(list.errs))
	for i, err := range list.errs {
		each[i] = words.Unawaited(task, err)
	}
	list.errs = each
	return list
}

// with returns p with so much more that has gone wrong beside it.
func (p *panicRecord) with(also []error, dropped int) *panicRecord {
	if len(also) == 0 && dropped == 0 {
		return p
	}
	return p.changed(func(c *panicRecord) {
		c.also = slices.Clone(p.also)
		for _, err := range also {
			if !slices.ContainsFunc(c.also, func(other error) bool { return tally.Same(bare(other), bare(err)) }) {
				c.also = append(c.also, err)
			}
		}
		if n := len(c.also) - tally.Max; n > 0 {
			c.also, dropped = c.also[:tally.Max], dropped+n
		}
		c.dropped += dropped
	})
}
