package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// Bounds of what one claim does beside claiming.
const (
	maxReaped  = 100
	maxTrimmed = 100
)

// An Engine is a taskqueue.Store over a DB.
type Engine struct {
	db     DB
	now    func() time.Time
	queues map[string]*queue // used inside db.Do alone

	mu     sync.Mutex
	hints  map[string]*hint // by queue
	closed bool
}

// A hint tells those who wait that something of a queue may be due earlier than they
// were told.
type hint struct {
	n    uint64        // counts them, from a number that no other process begins with
	next chan struct{} // closed, and replaced, by the next
}

var _ taskqueue.Store = (*Engine)(nil)

// Open returns the store that db holds. now tells the time; nil: that of package clock.
func Open(ctx context.Context, db DB, now func() time.Time) (*Engine, error) {
	if now == nil {
		now = clock.Now
	}
	e := &Engine{db: db, now: now, queues: map[string]*queue{}, hints: map[string]*hint{}}
	err := db.Do(ctx, func(tx Tx) (failed error) {
		type entry struct {
			name string
			meta []byte
		}
		var all []entry
		tx.Scan([]byte{keyQueue}, func(k, v []byte) bool {
			if k[0] != keyQueue {
				return false
			}
			all = append(all, entry{strings.TrimSuffix(string(k[1:]), "\x00"), slices.Clone(v)})
			return true
		})
		for _, one := range all {
			if e.queues[one.name], failed = restore(tx, one.name, one.meta, now()); failed != nil {
				return failed
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// do runs one step on one queue. f returns an error before it has written anything,
// or none.
func (e *Engine) do(ctx context.Context, name string, f func(tx Tx, q *queue, now time.Time) error) error {
	if err := taskqueue.CheckName("queue", name); err != nil {
		return err
	}
	sooner := false
	err := e.db.Do(ctx, func(tx Tx) error {
		q := e.queues[name]
		if q == nil {
			q = newQueue(name)
		}
		if err := f(tx, q, e.now()); err != nil {
			return err
		}
		if q.dirty || len(q.claims) > 0 {
			e.queues[name] = q
		}
		q.flush(tx)
		sooner, q.sooner = q.sooner, false
		return nil
	})
	// Only now can a claim find what the step has written.
	if sooner && err == nil {
		e.wake(name)
	}
	return err
}

// hintLocked returns the hints of a queue. e.mu is locked.
func (e *Engine) hintLocked(queue string) *hint {
	h := e.hints[queue]
	if h == nil {
		h = &hint{n: rand.Uint64(), next: make(chan struct{})}
		e.hints[queue] = h
	}
	return h
}

// wake wakes those who wait for something of a queue to become due.
func (e *Engine) wake(queue string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.hintLocked(queue); !e.closed {
		close(h.next)
		h.next = make(chan struct{})
		h.n++
	}
}

// seen returns the number of the last hint.
func (e *Engine) seen(queue string) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hintLocked(queue).n
}

// Wait is a method of taskqueue.Store.
func (e *Engine) Wait(ctx context.Context, queue string, seen uint64, until time.Time) error {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return err
	}
	e.mu.Lock()
	h, closed := e.hintLocked(queue), e.closed
	missed, next := h.n != seen, h.next
	e.mu.Unlock()
	switch {
	case closed:
		return taskqueue.ErrClosed
	case missed:
		return nil
	}
	timer := time.NewTimer(until.Sub(e.now()))
	defer timer.Stop()
	select {
	case <-next:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close is a method of taskqueue.Store.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	for _, h := range e.hints {
		close(h.next)
	}
	e.mu.Unlock()
	return e.db.Close()
}
