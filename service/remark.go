package service

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ambit-go/ambit/async"
)

// This file is about services that were told to stop, have not failed, and had something
// to say: "12 rows were not written: context canceled". Such a text is told in one line on
// the standard error, and changes no exit status.

// maxRemarks is how many remarks are kept, the newest; the others are counted.
const maxRemarks = 32

// remark notes what a function of a service has said that was told to stop, and has ended
// as e without a failure. Without [Main] nobody has a standard error to write to.
func (s *set) remark(e end) {
	now, what := e.m.now(), ""
	said := now.said
	switch e.what {
	case endOfDrain:
		said, what = now.drainSaid, "drain: "
	case earlyEnd:
		return
	}
	if s.program == nil {
		return
	}
	if said != nil && e.m.saysMore(said) {
		s.program.remark(&serviceError{e.m.label + ": " + what, said})
	}
	if list, ok := e.err.(*async.ScopeError); ok { // of what it has started
		for _, text := range list.Stopped {
			if !same(text, said) {
				s.program.remark(&serviceError{e.m.label + ": " + what, text})
			}
		}
	}
}

// remark is the one place where such a text comes in, and sayRemarks the one where it
// goes out.
func (p *program) remark(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remarks = append(p.remarks, err)
	if len(p.remarks) > maxRemarks { // the oldest may be of a Run of last year
		p.remarks = slices.Delete(p.remarks, 0, 1)
		p.dropped++
	}
}

// asyncPath is the import path of package async.
var asyncPath = reflect.TypeFor[async.ScopeError]().PkgPath()

// saysMore reports whether err is more than why m was told to stop. Servers and processes
// that were stopped have ways of their own to say so, which are no remarks; errors of
// package async hold what others have said, and why.
func (m *member) saysMore(err error) bool {
	if of := reflect.TypeOf(err); of.Kind() == reflect.Pointer && of.Elem().PkgPath() == asyncPath {
		return false
	}
	bare := slices.ContainsFunc(m.stops(), func(ctx context.Context) bool {
		return same(err, ctx.Err()) || same(err, context.Cause(ctx))
	})
	return !bare && m.onlyStops(err, false)
}

// sayRemarks writes what was noted, a line each, once.
func (p *program) sayRemarks() {
	p.mu.Lock()
	remarks, dropped := p.remarks, p.dropped
	p.remarks, p.dropped = nil, 0
	p.mu.Unlock()
	for _, err := range remarks {
		writeText(strings.Join(strings.Fields(textOf(err)), " "))
	}
	if dropped > 0 {
		writeText(fmt.Sprintf("and %d more that were told to stop had something to say", dropped))
	}
}
