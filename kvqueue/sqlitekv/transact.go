package sqlitekv

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// busyTime is how long a transaction waits at least that finds the file busy. Then it waits for a
// quarter more each time, up to 2 ms: who waits for much longer than the others seldom finds the
// file free.
const busyTime = 60 * time.Microsecond

// patient repeats a transaction as long as it finds the file locked by others, until ctx ends. since is since when that
// is known of the file; zero: it is not.
func (s *Store) patient(ctx context.Context, since time.Time, try func() error) error {
	for short := busyTime; ; short = min(short*5/4, time.Millisecond) {
		switch {
		case s.closed.Load():
			return errClosed
		case ctx.Err() != nil:
			return s.stopped(ctx, since)
		}
		err := try()
		if !is(err, busy, locked) {
			return s.file.said(err)
		}
		if since.IsZero() {
			since = time.Now()
		}
		pause := time.NewTimer(short + rand.N(short))
		select {
		case <-ctx.Done():
			pause.Stop()
			return s.stopped(ctx, since)
		case <-pause.C:
		}
	}
}

// read has do read all of the file as of one moment.
func (s *Store) read(ctx context.Context, do func(l *link) error) error {
	return s.patient(ctx, time.Time{}, func() error {
		l, err := s.file.reader()
		if err != nil {
			return err
		}
		defer s.file.release(l)
		return l.within("BEGIN", func() error { return do(l) })
	})
}

// A step is what one call wants to be written. Any number of them are one transaction.
type step struct {
	// do writes. If it cannot, for a reason of its own, it writes nothing and returns refused; an
	// err is the failure of the whole transaction.
	do   func(t *transaction) (refused, err error)
	done chan struct{} // closed when answer is set
	// answer is nil if the step was done, and why it was not. It is set before done is closed.
	answer error
}

// A queue has the steps that nobody has begun, in the order in which they came.
type queue struct {
	mu    sync.Mutex
	steps []*step
}

func (q *queue) add(p *step) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.steps = append(q.steps, p)
}

// take takes all steps, which whoever takes them ends.
func (q *queue) take() []*step {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.steps
	q.steps = nil
	return taken
}

// leave takes a step back, and reports false if somebody has taken it.
func (q *queue) leave(p *step) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.steps {
		if other == p {
			q.steps = append(q.steps[:i:i], q.steps[i+1:]...)
			return true
		}
	}
	return false
}

// write has a step done: by the caller, together with those of others that wait, or by another.
func (s *Store) write(ctx context.Context, do func(t *transaction) (refused, err error)) error {
	if err := ctx.Err(); err != nil {
		return stop(ctx)
	}
	p := &step{do: do, done: make(chan struct{})}
	began := time.Now()
	s.queue.add(p)
	select {
	case <-p.done:
	case s.writer <- struct{}{}:
		s.lead(ctx, p, began)
		<-s.writer
	case <-ctx.Done():
		if s.queue.leave(p) {
			return s.stopped(ctx, s.lockedAfter(began))
		}
		<-p.done // it is being written, which takes no longer than the disk does
	}
	return p.answer
}

// lead does all steps that wait when the file is free for this process, p among them if nobody
// has done it. It began to wait then.
func (s *Store) lead(ctx context.Context, p *step, began time.Time) {
	select {
	case <-p.done:
		return
	default:
	}
	var taken []*step
	var rev kvqueue.Rev
	defer s.lockedAt.Store(0)
	err := s.patient(ctx, s.lockedAfter(began), func() error {
		l := s.file.writer
		err := l.within("BEGIN IMMEDIATE", func() (err error) {
			taken = append(taken, s.queue.take()...) // a try that failed has none of them done
			rev, err = s.writeAll(l, taken)
			return err
		})
		if is(err, busy, locked) {
			s.lockedAt.CompareAndSwap(0, time.Now().UnixNano())
		}
		return err
	})
	if taken == nil { // the file was not free
		if since := s.lockedSince(); !since.IsZero() {
			s.vain.Store(&vain{since, time.Now()})
		}
		if s.queue.leave(p) {
			p.answer = err
			close(p.done)
		}
		return
	}
	s.vain.Store(nil)
	s.lockedAt.Store(0)
	if err == nil {
		err = s.settle(rev)
	}
	for _, p := range taken {
		if err != nil {
			p.answer = err
		}
		close(p.done)
	}
	if err == nil {
		s.ringAll()
	}
}

// writeAll does steps one after another, and returns the last revision.
func (s *Store) writeAll(l *link, steps []*step) (kvqueue.Rev, error) {
	t, err := s.transaction(l)
	if err != nil {
		return 0, err
	}
	for _, p := range steps {
		if p.answer, err = p.do(t); err != nil {
			return 0, err
		}
	}
	return t.rev, t.end()
}
