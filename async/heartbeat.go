package async

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// This file is about signs of life that a handler gives from inside.

// ErrNoBeat is the Err of a [WatchdogError] by [Heartbeat].
var ErrNoBeat = errors.New("no heartbeat")

// Heartbeat aborts the task if its handler does not call [Beat] at least every
// d, from its start on: its context is cancelled with a [*WatchdogError] that
// matches [ErrNoBeat]. Once the handler has returned no beat is missed. d <= 0
// panics.
func Heartbeat(d time.Duration) TaskOption {
	if d <= 0 {
		panic("async: Heartbeat(d): d must be positive")
	}
	return taskOption(func(t *taskOptions) { t.heart = &heart{every: d} })
}

// Beat says that the work of ctx gets on. It counts for the task of ctx and
// for all that this is part of. Without a [Heartbeat] it does nothing. It does
// not block.
func Beat(ctx context.Context) {
	t, _ := nearest(ctx)
	for ; t != nil; t = t.owner.task() {
		if t.more == nil {
			continue
		}
		if h, beats := t.more.heart.(*heart); beats {
			h.last.Store(int64(clock()))
		}
	}
}

// A heart remembers the last beat of a task. The timer is not set at every
// beat; when it fires it looks when the next beat is due.
type heart struct {
	every time.Duration // a beat is expected
	last  atomicInt64   // on our clock
	timer *time.Timer
}

func (h *heart) again() pulse { return &heart{every: h.every} }

// start begins to listen for beats of the task of s.
func (h *heart) start(s *scope) {
	h.last.Store(int64(clock()))
	s.mu.Lock()
	h.timer = time.AfterFunc(h.every, func() { h.listen(s) })
	s.timers = append(s.timers, h.timer)
	s.mu.Unlock()
}

// listen is called when a beat of s may be missing.
func (h *heart) listen(s *scope) {
	left := h.every - (clock() - time.Duration(h.last.Load()))
	s.mu.Lock()
	over := s.ended || s.sig.Load() != nil || s.t.state.Load() != stateRunning
	if !over && left > 0 {
		h.timer.Reset(left)
	}
	s.mu.Unlock()
	if !over && left <= 0 {
		s.cancel(canceled(&WatchdogError{Task: s.t.name(), Err: fmt.Errorf("%w for %v", ErrNoBeat, h.every)}))
	}
}
