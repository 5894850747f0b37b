package boltkv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"syscall"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/boltfile"
	"github.com/ambit-go/ambit/kvqueue"
)

// A Shared is a [kvqueue.KV] in a file that this process has, or another. It is made by
// [Share].
type Shared struct {
	path    string
	options []Option

	turn chan struct{} // has one element while somebody uses what follows
	now  backend       // nil: to be opened
	done bool          // closed

	checked boltfile.Checked
}

// A backend is the file, or the process that has it.
type backend interface {
	kvqueue.KV
	Close() error
}

var _ kvqueue.KV = (*Shared)(nil)

// patience is how long a process that has the file may take to listen at its socket, or
// to close the file after it has stopped to.
const patience = 5 * time.Second

// Share opens the file as [Open] does, or reaches the process that has it as [Dial] does.
// When that process ends, a later call opens the file, here or in another process: a call
// that was on its way fails with [ErrGone], and sessions have ended.
func Share(ctx context.Context, path string, options ...Option) (*Shared, error) {
	s := &Shared{path: path, options: options, turn: make(chan struct{}, 1)}
	if _, err := s.current(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Own reports whether this process has the file now.
func (s *Shared) Own() bool {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	_, own := s.now.(*Store)
	return own
}

// Close ends the use of the file. It may be called any number of times.
func (s *Shared) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.done = true
	if s.now == nil {
		return nil
	}
	err := s.now.Close()
	s.now = nil
	return err
}

// current returns where the keys are now.
func (s *Shared) current(ctx context.Context) (backend, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for begin := time.Now(); ; {
		switch {
		case s.done:
			return nil, errClosed
		case s.now != nil:
			return s.now, nil
		}
		now, err := s.open()
		switch {
		case err == nil:
			s.now = now
			return now, nil
		case !errors.Is(err, ErrTaken) || time.Since(begin) > patience:
			return nil, err
		}
		if err := async.Sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, ctx.Err()
		}
	}
}

// open opens the file, or reaches the process that has it. The error is ErrTaken while
// another process has it and does not listen yet, or not any more.
func (s *Shared) open() (backend, error) {
	own, taken := open(s.path, &s.checked, s.options...)
	if taken == nil {
		return own, nil
	}
	if !errors.Is(taken, ErrTaken) {
		return nil, taken
	}
	other, err := Dial(s.path)
	switch {
	case err == nil:
		return other, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, ErrGone):
		return nil, fmt.Errorf("%w: %w", taken, err)
	}
	return nil, err
}

// failed notes that a call has failed. If the process that has the file has gone, the next call
// opens it again. It waits no longer than ctx for those who open it just now; then the next call
// fails at once, and notes it.
func (s *Shared) failed(ctx context.Context, b backend, err error) {
	if !errors.Is(err, ErrGone) {
		return
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return
	}
	if s.now == b {
		s.now = nil
		_ = b.Close()
	}
}

// Limits returns what a transaction may hold.
func (s *Shared) Limits() kvqueue.Limits { return limits }

// Read reads ranges at one revision.
func (s *Shared) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	b, err := s.current(ctx)
	if err != nil {
		return nil, 0, err
	}
	results, rev, err := b.Read(ctx, ranges...)
	s.failed(ctx, b, err)
	return results, rev, err
}

// Commit does all writes if every guard holds.
func (s *Shared) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	b, err := s.current(ctx)
	if err != nil {
		return 0, err
	}
	inner := make([]kvqueue.Write, len(writes))
	for i, w := range writes {
		if w.Session != nil {
			own, ok := w.Session.(*sharedSession)
			if !ok || own.in != b {
				return 0, fmt.Errorf("%w: a key is put with a session that has ended", kvqueue.ErrConflict)
			}
			w.Session = own.Session
		}
		inner[i] = w
	}
	rev, err := b.Commit(ctx, guards, inner)
	s.failed(ctx, b, err)
	return rev, err
}

// Watch yields changes.
func (s *Shared) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		b, err := s.current(ctx)
		if err != nil {
			if ctx.Err() == nil {
				yield(kvqueue.Event{}, err)
			}
			return
		}
		for e, err := range b.Watch(ctx, after, prefixes...) {
			s.failed(ctx, b, err)
			if !yield(e, err) {
				return
			}
		}
	}
}

// Session begins a session.
func (s *Shared) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	b, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	inner, err := b.Session(ctx, ttl)
	s.failed(ctx, b, err)
	if err != nil {
		return nil, err
	}
	return &sharedSession{inner, s, b}, nil
}

// A sharedSession is a session of a backend, and ends with it.
type sharedSession struct {
	kvqueue.Session
	s  *Shared
	in backend
}

func (x *sharedSession) Renew(ctx context.Context) error {
	b, err := x.s.current(ctx)
	if err != nil {
		return err
	}
	if b != x.in {
		return kvqueue.ErrSessionLost
	}
	err = x.Session.Renew(ctx)
	x.s.failed(ctx, b, err)
	return err
}

func (x *sharedSession) End(ctx context.Context) error {
	err := x.Session.End(ctx)
	x.s.failed(ctx, x.in, err)
	if errors.Is(err, ErrGone) {
		return nil // the next one to have the file ends it
	}
	return err
}
