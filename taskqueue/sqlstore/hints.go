package sqlstore

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// hints tells those who wait that something is due earlier than they know. It listens to
// other processes from the first wait on.
type hints struct {
	listen func(ctx context.Context) // listens to others until ctx is done; nil: there is nobody else
	// ready is closed when others are listened to, or when that was tried for the first time.
	ready chan struct{}

	mu     sync.Mutex
	of     map[string]*hint // by queue
	stop   func()           // ends what listens, and joins it
	closed bool

	fault chan error // has why hints do not come, until a Wait has told it
	once  sync.Once
}

// A hint is what was heard of a queue.
type hint struct {
	n      uint64        // counts them, from a number that no other process begins with
	next   chan struct{} // closed, and replaced, by the next
	sleeps int64         // until when this process has said that it sleeps, in µs of the wall clock
	// watched: wakes is how often others were told of the queue when that was looked at last.
	watched bool
	wakes   int64
}

func (h *hints) hintLocked(queue string) *hint {
	if h.of == nil {
		h.of = map[string]*hint{}
	}
	of := h.of[queue]
	if of == nil {
		of = &hint{n: rand.Uint64(), next: make(chan struct{})}
		h.of[queue] = of
	}
	return of
}

// seen returns the number of the last hint. A claim asks before it looks.
func (h *hints) seen(queue string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hintLocked(queue).n
}

// wake wakes those who wait for something of a queue to become due.
func (h *hints) wake(queue string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.hintLocked(queue).ring()
	}
}

// wakeAll wakes everybody: nobody knows what was told while nobody listened.
func (h *hints) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		for _, of := range h.of {
			of.ring()
		}
	}
}

func (h *hint) ring() {
	close(h.next)
	h.next = make(chan struct{})
	h.n++
}

// watched returns the queues that anybody has waited for.
func (h *hints) watched() (queues []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for queue, of := range h.of {
		if of.watched {
			queues = append(queues, queue)
		}
	}
	return queues
}

// saw notes how often others were told of a queue, and wakes those who wait if that has
// changed. It reports whether the queue was watched before.
func (h *hints) saw(queue string, wakes int64) (before bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.hintLocked(queue)
	before = of.watched
	if before && of.wakes != wakes && !h.closed {
		of.ring()
	}
	of.watched, of.wakes = true, wakes
	return before
}

// after returns what is closed at the next hint, and whether there were more than seen. If told it begins to listen.
func (h *hints) after(queue string, seen uint64, listen bool) (next <-chan struct{}, missed, closed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if listen && h.stop == nil && h.listen != nil && !h.closed {
		h.ready = make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		var listener sync.WaitGroup
		listener.Go(func() { h.listen(ctx) })
		h.stop = func() { cancel(); listener.Wait() }
	}
	of := h.hintLocked(queue)
	return of.next, of.n != seen, h.closed
}

// deaf notes why hints do not come, the first time.
func (h *hints) deaf(fault error) { h.once.Do(func() { h.fault <- fault }) }

// untold returns why hints do not come, once.
func (h *hints) untold() error {
	select {
	case fault := <-h.fault:
		return fault
	default:
		return nil
	}
}

// close wakes all that wait, and joins what listens.
func (h *hints) close() {
	h.mu.Lock()
	stop := h.stop
	if !h.closed {
		for _, of := range h.of {
			close(of.next)
		}
	}
	h.closed, h.stop = true, nil
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// briefWait is so short a wait that nobody is listened to for it, or told of it: as where others are at what is due.
const briefWait = 11 * time.Millisecond

// Wait is a method of taskqueue.Store.
func (s *Store) Wait(ctx context.Context, queue string, seen uint64, until time.Time) error {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return err
	}
	long := clock.Until(until) > briefWait
	next, missed, closed := s.hints.after(queue, seen, long)
	switch {
	case closed:
		return taskqueue.ErrClosed
	case missed:
		return nil
	}
	if fault := s.hints.untold(); fault != nil {
		return fault
	}
	if s.hints.listen != nil && long {
		begin := s.watches
		if s.postgres {
			begin = s.sleeps
		}
		if began, err := begin(ctx, queue); began || err != nil {
			return err // what was added before that is to be claimed first
		}
	}
	timer := time.NewTimer(clock.Until(until))
	defer timer.Stop()
	select {
	case <-next: // also by Close, of which the next call tells
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
