package service

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file tells what has failed and goes on: a service that is started again, or that waits for what it has started.
// What ends a program is in its error.

// Log is where it is told that a service has failed or panicked, and is started again
// ([async.Restart]): a line for each time, with the error, and the stack of a panic.
//
//	service.Main(run, service.Log(slog.Default()))
//
// # Details
//
// Without it nobody would know of failures that were mended. It is also told once when a Run has failed
// 10 s ago, and what it has started goes on: nothing follows from the failure before that has ended, so the
// line names it. Of a panic package async says that, on the standard error. Defaults to [slog.Default];
// nil is quiet.
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

// logRestart tells of the failure of the call before, if there was one: Run is about to be called again.
func (m *member) logRestart() { m.logFailure("is started again") }

// logStop is logRestart for a service whose turn to stop has come before that. Its task has ended with err.
func (m *member) logStop(err error) {
	if m.keepText(err) {
		m.logFailure("is to stop before it is started again")
	}
}

// keepText notes how the last call has failed, if it has not returned, for the task, which has ended with err, is asked no
// more. It reports whether err tells of such a failure.
func (m *member) keepText(err error) bool {
	last, ok := err.(*async.RestartError)
	if !ok || last.Err == nil {
		return false
	}
	text := textOf(last.Err)
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	if u, ok := m.state.failed.(*unreturned); ok {
		u.text = text
	}
	return true
}

// logFailure tells of the failure of the last call, if that was not told, and what comes of it. No lock is held, for a
// handler of users is called.
func (m *member) logFailure(what string) {
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
	attrs := []slog.Attr{slog.Int("call", calls+1), slog.String("err", text)}
	if stack != nil {
		attrs = append(attrs, slog.String("stack", string(stack)))
	}
	m.log(level, what, attrs...)
}

// patience is how long what a Run has started that has failed may go on before that is logged. That of panics, which
// package async tells of, is as long.
const patience = 10 * time.Second

// logWait tells that Run has failed with err, and nothing follows from that yet: what it has started has not ended.
func (m *member) logWait(err error) {
	if m.set.quiet {
		return
	}
	left, more := m.tasks()
	if more > 0 {
		left = append(left, fmt.Sprintf("and %d more", more))
	}
	m.log(slog.LevelWarn, "waits for what it has started", slog.String("err", textOf(err)), slog.String("left", strings.Join(left, ", ")))
}

// log tells of a failure of m, and what comes of it.
func (m *member) log(level slog.Level, what string, attrs ...slog.Attr) {
	to := m.set.options.log
	if to == nil {
		to = slog.Default()
	}
	attrs = append([]slog.Attr{slog.String("service", m.svc.Name)}, attrs...)
	to.LogAttrs(context.Background(), level, m.label+" has failed, and "+what, attrs...)
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
