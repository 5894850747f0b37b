package service

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file tells what has failed and goes on: a service that is started again, or that waits for what it has started.
// The error of a program has what ends it.

// Log is where it is told that a service has failed or panicked, and is started again
// ([async.Restart]): a line for each time, with the error, and the stack of a panic.
//
//	service.Main(run, service.Log(slog.Default()))
//
// # Details
//
// Without it nobody would know of failures that were mended. It is also told once when a Run has failed
// 10 s ago, and what it has started goes on: nothing follows from the failure before that has ended, so the
// line names it. Package async says that of a panic, on the standard error. A handler that
// blocks or panics holds up no stop: a goroutine writes the lines, and Run waits for it for a second at its end.
// Defaults to [slog.Default]; nil is quiet.
func Log(l *slog.Logger) Option {
	return option(func(o *options) { o.log, o.quiet = l, l == nil })
}

// logRestart tells of the failure of the call before, if there was one: Run is called again when that is logged, or ctx
// has ended.
func (m *member) logRestart(ctx context.Context) {
	select {
	case <-m.logFailure("is started again"):
	case <-ctx.Done():
	}
}

// logStop is logRestart for a service whose turn to stop has come before that. Its task has ended with err.
func (m *member) logStop(err error) {
	if _, ok := err.(*async.RestartError); ok {
		m.logFailure("is to stop before it is started again")
	}
}

// logFailure tells of the failure of the last call, if that was not told, and of its consequence. The channel is
// closed when that is done.
func (m *member) logFailure(consequence string) (logged <-chan struct{}) {
	m.set.mu.Lock()
	failed, call := m.state.failed, m.state.calls
	m.state.failed = nil
	if !m.state.running { // the call that is not made
		call++
	}
	m.set.mu.Unlock()
	if failed == nil || m.set.quiet {
		return closedChan
	}
	level := slog.LevelWarn
	p, panicked := failed.(*async.PanicError)
	if panicked || same(failed, async.ErrGoexit) {
		level = slog.LevelError
	}
	return m.log(level, consequence, func() []slog.Attr {
		if panicked {
			failed = joined(append([]error{p}, p.Also...))
		}
		attrs := []slog.Attr{slog.Int("call", call), slog.String("err", textOf(failed))}
		if panicked {
			attrs = append(attrs, slog.String("stack", string(p.Stack)))
		}
		return attrs
	})
}

// patience is how long what a Run has started that has failed may go on before that is logged. Package async has
// as much patience with panics.
const patience = 10 * time.Second

// logWait tells that Run has failed with err, and nothing follows from that yet: what it has started has not ended.
func (m *member) logWait(err error) {
	m.log(slog.LevelWarn, "waits for what it has started", func() []slog.Attr {
		left, more := m.tasks()
		if more > 0 {
			left = append(left, fmt.Sprintf("and %d more", more))
		}
		return []slog.Attr{slog.String("err", textOf(err)), slog.String("left", strings.Join(left, ", "))}
	})
}

// log tells of a failure of m, and of its consequence. It does not wait: texts and the handler are a user's, and
// may block or panic. So a goroutine of its own writes the line, when the one before is written. The channel is
// closed then.
func (m *member) log(level slog.Level, consequence string, attrs func() []slog.Attr) (logged <-chan struct{}) {
	s := m.set
	if s.quiet {
		return closedChan
	}
	done := make(chan struct{})
	s.mu.Lock()
	before := s.logged
	s.logged = done
	s.mu.Unlock()
	go func() {
		defer close(done)
		<-before
		defer func() { _ = recover() }()
		all := append([]slog.Attr{slog.String("service", m.svc.Name)}, attrs()...)
		to := cmp.Or(s.options.log, slog.Default())
		to.LogAttrs(context.Background(), level, m.label+" has failed, and "+consequence, all...)
	}()
	return done
}

// endLog waits until the last line is written, or for lastWords.
func (s *set) endLog() {
	s.mu.Lock()
	logged := s.logged
	s.mu.Unlock()
	limit := time.NewTimer(lastWords)
	defer limit.Stop()
	select {
	case <-logged:
	case <-limit.C:
	}
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
