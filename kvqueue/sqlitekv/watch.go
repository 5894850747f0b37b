package sqlitekv

import (
	"bytes"
	"context"
	"database/sql/driver"
	"iter"
	"slices"
	"time"

	"github.com/ambit-go/ambit/kvqueue"
)

// A watch is one caller of Watch.
type watch struct {
	bell chan struct{} // of size 1: the file may have changed
}

func (w *watch) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

func (s *Store) ringAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		w.ring()
	}
}

// Watch yields changes. It leaves out a put of more than 256 bytes if the key was written again
// before it was yielded.
func (s *Store) Watch(ctx context.Context, after kvqueue.Rev, prefixes ...[]byte) iter.Seq2[kvqueue.Event, error] {
	return func(yield func(kvqueue.Event, error) bool) {
		w := &watch{bell: make(chan struct{}, 1)}
		w.ring()
		s.addWatch(w)
		defer s.removeWatch(w)
		for rev := after; ; {
			select {
			case <-w.bell:
			case <-ctx.Done():
				return
			}
			events, next, err := s.changes(ctx, rev, prefixes)
			rev = next
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(kvqueue.Event{}, err)
				}
				return
			}
		}
	}
}

// changes returns what has changed since a revision, and at which revision it was read.
func (s *Store) changes(ctx context.Context, after kvqueue.Rev, prefixes [][]byte) (events []kvqueue.Event, rev kvqueue.Rev, err error) {
	err = s.read(ctx, func(l *link) error {
		events = events[:0]
		var trimmed kvqueue.Rev
		err := l.query("SELECT trimmed, rev FROM state", nil, func(row []driver.Value) bool {
			trimmed, rev = kvqueue.Rev(row[0].(int64)), kvqueue.Rev(row[1].(int64))
			return false
		})
		if err == nil && after < trimmed {
			err = kvqueue.ErrCompacted
		}
		if err != nil || rev == after {
			return err
		}
		var wrong error
		var unfilled []int // events without their values
		err = l.query("SELECT rev, changes FROM log WHERE rev > ?", []any{int64(after)}, func(row []driver.Value) bool {
			wrong = changesOf(bytesOf(row[1]), func(k kind, key, value []byte) {
				if !slices.ContainsFunc(prefixes, func(p []byte) bool { return bytes.HasPrefix(key, p) }) {
					return
				}
				if k == large {
					unfilled = append(unfilled, len(events))
				}
				events = append(events, kvqueue.Event{Pair: kvqueue.Pair{Key: key, Value: value, Rev: kvqueue.Rev(row[0].(int64))}, Deleted: k == deleted})
			})
			return wrong == nil
		})
		if err == nil {
			err = wrong
		}
		if err == nil {
			events, err = l.fill(events, unfilled)
		}
		return err
	})
	return events, rev, err
}

// fill adds the values of keys to the events that lack them, and leaves those events out whose
// keys were written again since.
func (l *link) fill(events []kvqueue.Event, unfilled []int) ([]kvqueue.Event, error) {
	for _, i := range slices.Backward(unfilled) {
		e, there := &events[i], false
		err := l.query("SELECT value FROM kv WHERE key = ? AND rev = ?", []any{e.Key, int64(e.Rev)}, func(row []driver.Value) bool {
			e.Value, there = bytesOf(row[0]), true
			return false
		})
		if err != nil {
			return nil, err
		}
		if !there {
			events = slices.Delete(events, i, i+1)
		}
	}
	return events, nil
}

// addWatch begins to look at the file if nobody did.
func (s *Store) addWatch(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[w] = struct{}{}
	if s.stop == nil && !s.closed.Load() {
		ctx, stop := context.WithCancel(context.Background())
		s.stop = stop
		s.poller.Go(func() { s.poll(ctx) })
	}
}

func (s *Store) removeWatch(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.watches, w); len(s.watches) == 0 && s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// every is how long the poller sleeps between two looks at the file.
const every = 2 * time.Millisecond

// poll looks for what other processes change, and for sessions whose time is over, until ctx ends.
func (s *Store) poll(ctx context.Context) {
	for ctx.Err() == nil {
		_ = s.pollOn(ctx) // a file that cannot be read is the affair of those who read it
		s.ringAll()
		sleep(ctx, time.Second)
	}
}

// pollOn polls on one connection: SQLite keeps a number that a connection sees change with
// every transaction of another one. To read it takes some microseconds.
func (s *Store) pollOn(ctx context.Context) error {
	l, err := s.file.reader()
	if err != nil {
		return err
	}
	defer s.file.release(l)
	last, until := int64(-1), int64(0)
	for ctx.Err() == nil {
		began := time.Now()
		number, _, err := l.number("PRAGMA data_version")
		if err == nil && number != last {
			if until, _, err = l.number("SELECT min(until) FROM session"); err == nil {
				last = number
				s.ringAll()
			}
		}
		if err != nil && !is(err, busy, locked) {
			return err
		}
		if until > 0 && until <= s.now() {
			_ = s.endLate(ctx) // or the next look does
			until = 0
			last = -1
		}
		sleep(ctx, max(every, 3*time.Since(began))) // never more than a quarter of the time
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
