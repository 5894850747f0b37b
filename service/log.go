package service

import (
	"cmp"
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/ambit-go/ambit/async"
)

// This file tells what has failed and goes on: a service that is started again. What ends a program is
// in its error.

// Log is where it is told that a service has failed or panicked, and is started again
// ([async.Restart]): a line for each time, with the error, and the stack of a panic.
//
//	service.Main(run, service.Log(slog.Default()))
//
// # Details
//
// Without it nobody would know of failures that were mended. Defaults to [slog.Default]; nil is
// quiet.
func Log(l *slog.Logger) Option {
	return option(func(o *options) { o.log, o.quiet = l, l == nil })
}

// An unreturned is a call of Run that has not returned: it has panicked, or called Goexit. What it panicked with is known
// to the task: to recover it here would change the stack that others are told.
type unreturned struct {
	stack []byte
	text  string // how the task has ended by it, if it has
}

func (u *unreturned) Error() string { return "it has not returned" }

// noteFailure notes how a call of Run has failed that may be made again. It is called while a panic is on its
// way up.
func (m *member) noteFailure(returned bool, err error) {
	if !returned {
		err = &unreturned{stack: debug.Stack()}
	}
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	m.state.failed = err
}

// logRestart tells of the failure of the call before, if there was one: Run is about to be called again. No
// lock is held, for a handler of users is called.
func (m *member) logRestart() {
	m.set.mu.Lock()
	failed, calls := m.state.failed, m.state.calls
	m.state.failed = nil
	m.set.mu.Unlock()
	if failed == nil || m.set.quiet {
		return
	}
	level, text, stack := slog.LevelWarn, textOf(failed), []byte(nil)
	switch e := failed.(type) {
	case *unreturned:
		level, text, stack = slog.LevelError, cmp.Or(e.text, m.lastFailure()), e.stack
	case *async.PanicError: // of a task that Run has started
		level, stack = slog.LevelError, e.Stack
	}
	attrs := []slog.Attr{slog.String("service", m.svc.Name), slog.Int("call", calls+1), slog.String("err", text)}
	if stack != nil {
		attrs = append(attrs, slog.String("stack", string(stack)))
	}
	to := m.set.log
	if to == nil {
		to = slog.Default()
	}
	to.LogAttrs(context.Background(), level, m.label+" has failed, and is started again", attrs...)
}

// lastFailure returns the text of the last failure of the task of m, as whoever looks at the task is told it.
func (m *member) lastFailure() string {
	for _, n := range async.Snapshot(async.Of(m.own.Context()), async.Texts()).Nodes {
		if n.Restart != nil {
			return n.Restart.Text
		}
	}
	return "panic or Goexit"
}
