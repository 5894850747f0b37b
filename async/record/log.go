// Package record writes down what happens to tasks of package async: [Log] to a log, a [Recorder] to memory that is
// bounded.
//
//	rec := record.New()
//	err := async.Scope(ctx, serve, async.Observe(rec))
//	err = rec.WriteTrace(file)
//
// It is experimental.
package record

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Log returns an observer that writes a line to l for each task that ends, and a line for each panic when it
// happens.
//
//	async.Scope(ctx, serve, async.Observe(record.Log(nil)))
//
// # Details
//
// A nil l is the default logger; see [async.Observe]. The level says how it has ended: Error for a panic or Goexit,
// Warn for an error and for a limit of its own that has passed, Debug for all that has ended well or because
// something else has told it to stop. The attributes are task, id, owner (of which task, if of any), took, outcome,
// and, where there are any, err and cause. The ctx of a line is that of the task, so a handler that looks for a
// trace finds it.
//
// At most 10 lines a second of one name and level are written; the first line after that says
// how many more there were. 512 names are told apart, all others count as one.
func Log(l *slog.Logger) async.Observer { return &logger{to: l, names: make(map[series]*window)} }

// Bounds of a log.
const (
	mostLines = 10 // of a series, in a window
	mostNames = 512
	second    = time.Second
)

type logger struct {
	to    *slog.Logger
	mu    sync.Mutex // guards what follows; it is not held while a line is written
	names map[series]*window
}

// A series is the lines that are counted together.
type series struct {
	task  string
	level slog.Level
}

// A window is what was written of a series since began.
type window struct {
	began          time.Time
	lines, dropped int
}

// Observe writes what e tells.
func (l *logger) Observe(e async.Event) {
	level, outcome := judge(&e)
	to := l.to
	if to == nil {
		to = slog.Default()
	}
	if e.Kind != async.EventEnd && e.Kind != async.EventPanic || !to.Enabled(e.Ctx, level) {
		return
	}
	dropped, ok := l.pass(series{e.Task, level})
	if !ok {
		return
	}
	attrs := []slog.Attr{slog.String("task", e.Task), slog.String("id", e.ID.String())}
	if !e.Owner.IsZero() {
		attrs = append(attrs, slog.String("owner", e.Owner.String()))
	}
	text := "task ended"
	if e.Kind == async.EventPanic {
		text = "task panicked"
	} else {
		attrs = append(attrs, slog.Duration("took", e.Duration), slog.String("outcome", outcome))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("err", e.Err))
	}
	if e.Cause != nil {
		attrs = append(attrs, slog.Any("cause", e.Cause))
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Int("more", dropped))
	}
	to.LogAttrs(e.Ctx, level, text, attrs...)
}

// pass reports whether a line of s may be written, and how many were not since the last one that was.
func (l *logger) pass(s series) (dropped int, ok bool) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.names[s]
	if w == nil {
		if len(l.names) >= mostNames {
			s.task = ""
			w = l.names[s]
		}
		if w == nil {
			w = &window{began: now}
			l.names[s] = w
		}
	}
	if now.Sub(w.began) >= second {
		dropped = w.dropped
		*w = window{began: now}
	}
	if w.lines++; w.lines > mostLines {
		w.dropped++
		return 0, false
	}
	return dropped, true
}

// judge says how a task has ended, and at which level that is written.
func judge(e *async.Event) (level slog.Level, outcome string) {
	var (
		panicked *async.PanicError
		limit    *async.TimeoutError
		missed   *async.WatchdogError
	)
	switch {
	case e.Kind == async.EventSkipped && e.Echo:
		return slog.LevelDebug, "skipped"
	case e.Kind == async.EventPanic:
		return slog.LevelError, "panic"
	case e.Err == nil:
		return slog.LevelDebug, "ok"
	case errors.As(e.Err, &panicked):
		return slog.LevelError, "panic"
	case errors.Is(e.Err, async.ErrGoexit):
		return slog.LevelError, "goexit"
	case errors.As(e.Cause, &limit) && limit.Task == e.Task:
		return slog.LevelWarn, "timeout"
	case errors.As(e.Cause, &missed) && missed.Task == e.Task:
		return slog.LevelWarn, "watchdog"
	case e.Echo:
		return slog.LevelDebug, "cancelled"
	default:
		return slog.LevelWarn, "error"
	}
}
