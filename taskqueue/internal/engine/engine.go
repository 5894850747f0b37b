package engine

import (
	"context"
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
	wake   chan struct{} // closed, and replaced, when something may be due earlier than was said
	closed bool
}

var _ taskqueue.Store = (*Engine)(nil)

// Open returns the store that db holds. now tells the time; nil: that of package clock.
func Open(ctx context.Context, db DB, now func() time.Time) (*Engine, error) {
	if now == nil {
		now = clock.Now
	}
	e := &Engine{db: db, now: now, queues: map[string]*queue{}, wake: make(chan struct{})}
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
	return e.db.Do(ctx, func(tx Tx) error {
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
		return nil
	})
}

// sooner wakes those who wait for something to become due.
func (e *Engine) sooner() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		close(e.wake)
		e.wake = make(chan struct{})
	}
}

// Wait is a method of taskqueue.Store. It wakes for every queue alike.
func (e *Engine) Wait(ctx context.Context, _ []string, until time.Time) error {
	e.mu.Lock()
	wake, closed := e.wake, e.closed
	e.mu.Unlock()
	if closed {
		return taskqueue.ErrClosed
	}
	var timer <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(until.Sub(e.now()))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-wake:
		return nil
	case <-timer:
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
	close(e.wake)
	e.mu.Unlock()
	return e.db.Close()
}
