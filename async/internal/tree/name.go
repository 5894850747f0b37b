package tree

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

// Name returns the name that was given to t, or that of its function.
func (t *Task) Name() string { return t.Naming().In(t.Owner) }

// Naming returns what t is called by.
func (t *Task) Naming() (n Naming) {
	switch {
	case t.More != nil && t.More.Name != "":
		n.given = t.More.Name
	case t.Kind == KindRoot:
		n.label = "root"
	case t.Kind == KindPromise:
		n.label = "promise"
	case t.Self == nil:
		n.label = "scope"
	default:
		if v := reflect.ValueOf(t.Self.Func()); v.Kind() == reflect.String {
			n.label = v.String()
		} else {
			n.pc = v.Pointer()
		}
	}
	return n
}

// In returns the name of a task that belongs to s.
func (n Naming) In(s *Scope) string {
	if n.given != "" {
		return n.given
	}
	label := n.label
	if n.pc != 0 {
		label = FuncName(n.pc)
	}
	for ; s != nil; s = s.Task.Owner {
		if m := s.Task.More; m != nil && m.Name != "" {
			return m.Name + "/" + label
		}
	}
	return label
}

// IsNamed reports whether somebody has named t. The name of a run is that of its task.
func IsNamed(t *Task) bool {
	t = taskOf(t)
	return t.More != nil && t.More.Name != ""
}

// taskOf returns the task with Restart of which t is a run, or t.
func taskOf(t *Task) *Task {
	if t.Kind == KindRun {
		return t.Owner.Task
	}
	return t
}

// ScopeName returns the name of the nearest task around t that somebody has named, "" if there is none. A run and
// its task are one.
func ScopeName(t *Task) string {
	for s := taskOf(t).Owner; s != nil; s = s.Task.Owner {
		if s.Task.Kind != KindRun && IsNamed(s.Task) {
			return s.Task.More.Name
		}
	}
	return ""
}

// FuncName returns the name of the function at pc without the path of its package.
func FuncName(pc uintptr) string {
	name := runtime.FuncForPC(pc).Name()
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], "-fm")
}

// LateStart returns the error of late, which was started in t after t has ended.
func LateStart(t *Task, late string) error {
	name := t.Name()
	if t.Kind == KindScope && (t.More == nil || t.More.Name == "") {
		name += " (give it an async.Name to see which)"
	}
	return fmt.Errorf("%w: %s; too late for %s: start it with the ctx of a scope that lasts", ErrScopeEnded, name, late)
}

// nameFailure has f, of t, listed in the tally of the owner with the name that t was
// given, so that the text of a list says whose each failure is. Goexit, which says
// nothing else, is listed with the name of the function.
func nameFailure(t *Task, f *tally.Fact) {
	named := t.More != nil && t.More.Name != ""
	if f.Err == nil || !named && f.Err != error(ErrGoexit) {
		return
	}
	n, s := t.Naming(), t.Owner
	f.As = &namedFailure{f.Err, n, s}
	if f.Class != tally.Failure {
		return
	}
	errs := slices.Clone(f.Errs)
	for i, err := range errs {
		if _, named := err.(*namedFailure); !named {
			errs[i] = &namedFailure{err, n, s}
		}
	}
	f.Errs = errs
}

// failuresOf returns the errors of l, each with its task if that is known, for the tally of the
// scope around.
func failuresOf(l *Listing) []error {
	if l.Paths == nil {
		return l.Errs
	}
	errs := slices.Clone(l.Errs)
	for i, path := range l.Paths {
		if path != "" {
			errs[i] = &namedFailure{errs[i], Naming{given: path}, nil}
		}
	}
	return errs
}

// A namedFailure is a failure with the task whose it is. Only tallies hold one.
type namedFailure struct {
	error
	task Naming
	in   *Scope
}

// WithPaths returns errs as users are given them, and the names of their tasks.
func WithPaths(errs []error) (given []error, paths []string) {
	for i, err := range errs {
		f, ok := err.(*namedFailure)
		if !ok {
			continue
		}
		if paths == nil {
			given, paths = slices.Clone(errs), make([]string, len(errs))
		}
		given[i], paths[i] = f.error, f.task.In(f.in)
	}
	if paths == nil {
		return errs, nil
	}
	return given, paths
}

// withoutPath returns err as users are given it.
func withoutPath(err error) error {
	if f, ok := err.(*namedFailure); ok {
		return f.error
	}
	return err
}

// Bare returns the failure that err tells of, which is err itself unless it says that nobody
// awaited that: both are one failure. All copies of a panic are one, too.
func Bare(err error) error {
	if f, ok := err.(*namedFailure); ok {
		return Bare(f.error)
	}
	if p := Codec.PanicIn(err); p != nil {
		return p.identity.first
	}
	if _, failure, ok := Codec.UnawaitedIn(err); ok {
		return Bare(failure)
	}
	return err
}

// Listed returns the list of errors that v tells of, nil if it is none. If that is of
// a future that nobody awaited, each of its errors says so.
func (v *Verdict) Listed() *Listing {
	task, failure, unawaited := Codec.UnawaitedIn(v.Err)
	if !unawaited {
		return Codec.ListIn(v.Err)
	}
	list := Codec.ListIn(Bare(failure))
	if list == nil {
		return nil
	}
	each := make([]error, len(list.Errs))
	for i, err := range list.Errs {
		each[i] = Codec.Unawaited(task, err)
	}
	list.Errs = each
	return list
}

// with returns p with so much more that has gone wrong beside it.
func (p *Panic) with(also []error, dropped int) *Panic {
	if len(also) == 0 && dropped == 0 {
		return p
	}
	return p.changed(func(c *Panic) {
		c.Also = slices.Clone(p.Also)
		for _, err := range also {
			if !slices.ContainsFunc(c.Also, func(other error) bool { return tally.Same(Bare(other), Bare(err)) }) {
				c.Also = append(c.Also, err)
			}
		}
		if n := len(c.Also) - tally.Max; n > 0 {
			c.Also, dropped = c.Also[:tally.Max], dropped+n
		}
		c.Dropped += dropped
	})
}
