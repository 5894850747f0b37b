package async

import (
	"reflect"
	"runtime"
	"strings"
)

// This file names tasks, for errors, events and lists of what is left.

// name returns the name that was given to t, or that of its function.
func (t *task) name() string {
	if t.more != nil && t.more.name != "" {
		return t.more.name
	}
	own := "scope"
	switch {
	case t.kind == kindRoot:
		own = "root"
	case t.kind == kindPromise:
		own = "promise"
	case t.self != nil:
		own = funcName(t.self.fn())
	}
	for s := t.owner; s != nil; s = s.t.owner {
		if m := s.t.more; m != nil && m.name != "" {
			return m.name + "/" + own
		}
	}
	return own
}

// funcName returns the name of a function without the path of its package, or
// f itself if it is a string.
func funcName(f any) string {
	v := reflect.ValueOf(f)
	if v.Kind() == reflect.String {
		return v.String() // of something of ours
	}
	name := runtime.FuncForPC(v.Pointer()).Name()
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], "-fm")
}
