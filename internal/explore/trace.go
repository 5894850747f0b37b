package explore

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// A tracer writes down what is decided, for a schedule that is to be told. A
// nil tracer does nothing.
type tracer struct {
	program string
	lines   strings.Builder
	where   map[*gor]string // the call that the goroutine is in
}

func (t *tracer) String() string { return t.program + t.lines.String() }

// at notes where g, the caller, is.
func (t *tracer) at(g *gor) {
	if t.where == nil {
		t.where = make(map[*gor]string)
	}
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var place []string
	for len(place) < 2 {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "internal/explore.") || strings.HasSuffix(f.File, "_test.go") {
			name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]
			place = append(place, fmt.Sprintf("%s %s:%d", name, filepath.Base(f.File), f.Line))
		}
		if !more {
			break
		}
	}
	t.where[g] = strings.Join(place, " < ")
}

// goes notes that g goes on.
func (t *tracer) goes(w *World, g *gor, n int) {
	if t != nil {
		t.add(n, g.name, w.describeLocked(g.op), t.where[g])
	}
}

func (t *tracer) add(n int, name, what, where string) {
	if t != nil {
		fmt.Fprintf(&t.lines, "%5d  %-12s %-18s %s\n", n, name, what, where)
	}
}

// describeLocked says what o is.
func (w *World) describeLocked(o op) string {
	switch {
	case o.kind == opPoint:
		return o.what
	case o.mutex != nil:
		s := fmt.Sprintf("%v %d", o.kind, w.idLocked(o.mutex))
		if !o.mutex.freeLocked(w) {
			s += ", held by " + o.mutex.holder.name
		}
		return s
	default:
		return fmt.Sprintf("%v %d", o.kind, w.idLocked(o.object))
	}
}
