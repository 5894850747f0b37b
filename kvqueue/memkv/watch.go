package memkv

import (
	"bytes"
	"context"
	"slices"

	"github.com/ambit-go/ambit/kvqueue"
)

// mostWaiting is how many changes wait for a watch that does not take them; then it has to
// list anew.
const mostWaiting = 65536

// A watch collects changes for one caller of Watch. All but prefixes and bell is guarded by
// inner.mu.
type watch struct {
	s        *inner
	prefixes [][]byte
	bell     chan struct{} // of size 1: there is something to take
	events   []kvqueue.Event
	err      error // how it ends
}

func (s *inner) watch(from kvqueue.Rev, prefixes [][]byte) *watch {
	w := &watch{s: s, prefixes: prefixes, bell: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		w.err = errClosed
	case from < s.known:
		w.err = kvqueue.ErrCompacted
	}
	for _, e := range s.history {
		if e.Rev > from {
			w.addLocked(e)
		}
	}
	s.watches[w] = struct{}{}
	w.ring()
	return w
}

func (s *inner) unwatch(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w)
}

// next waits for changes. With an error it returns the last ones.
func (w *watch) next(ctx context.Context) ([]kvqueue.Event, error) {
	select {
	case <-w.bell:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	events := w.events
	w.events = nil
	return events, w.err
}

func (w *watch) addLocked(e kvqueue.Event) {
	if w.err != nil || !slices.ContainsFunc(w.prefixes, func(p []byte) bool { return bytes.HasPrefix(e.Key, p) }) {
		return
	}
	if len(w.events) == mostWaiting {
		w.events = nil
		w.endLocked(kvqueue.ErrCompacted)
		return
	}
	w.events = append(w.events, e)
	w.ring()
}

func (w *watch) endLocked(err error) {
	if w.err == nil {
		w.err = err
	}
	w.ring()
}

func (w *watch) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// publishLocked tells the changes of one transaction.
func (s *inner) publishLocked(events []kvqueue.Event) {
	s.history = append(s.history, events...)
	if over := len(s.history) - keepHistory; over > keepHistory {
		s.known = s.history[over-1].Rev
		s.history = slices.Clone(s.history[over:])
	}
	for w := range s.watches {
		for _, e := range events {
			w.addLocked(e)
		}
	}
}
