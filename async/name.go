package async

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
)

// This file names tasks, for errors, events and lists of what is left.

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
	return fmt.Errorf("%w: %s; too late for %s: start it with the ctx of a scope that lasts", ErrScopeEnded, name, late)
}
