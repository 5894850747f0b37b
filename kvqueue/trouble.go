package kvqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A source is one of those that ask the store behind the calls.
type source uint8

const (
	beginning source = iota // begins sessions
	claiming                // claims items
	watching                // follows the changes of others
)

// A trouble is the last error of each source, as long as it lasts: an empty queue and a broken
// store must not look alike.
type trouble struct {
	mu    sync.Mutex
	of    [watching + 1]error
	since [watching + 1]time.Time // when the store was asked what it has not answered yet; zero: nothing
}

func (t *trouble) errLocked() error {
	for _, err := range t.of {
		if err != nil {
			return err
		}
	}
	return nil
}

// set notes the outcome of a source, and reports whether the trouble has begun or ended by it.
func (t *trouble) set(s source, err error) (turned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.errLocked() != nil
	t.of[s] = err
	return before != (t.errLocked() != nil)
}

// Those who wait are told that the store has not answered for quietFor; after quietLong that is trouble.
const (
	quietFor  = 200 * time.Millisecond
	quietLong = 5 * time.Second
)

// asks notes that a source asks the store, until the function is called that it returns, which reports whether
// it was told as trouble meanwhile that the store does not answer.
func (q *Queue) asks(s source) (answered func() (told bool)) {
	began := time.Now()
	q.trouble.mu.Lock()
	q.trouble.since[s] = began
	q.trouble.mu.Unlock()
	told := false // guarded by trouble.mu
	late := time.AfterFunc(quietLong, func() {
		err := q.silent(began)
		q.trouble.mu.Lock()
		first := q.trouble.errLocked() == nil
		if told = q.trouble.since[s] == began && q.trouble.of[s] == nil; told {
			q.trouble.of[s] = err
		}
		first = first && told
		q.trouble.mu.Unlock()
		if first {
			q.tell(Report{Kind: StoreFailed, Items: 1, Why: reason(err)})
		}
	})
	return func() bool {
		late.Stop()
		q.trouble.mu.Lock()
		defer q.trouble.mu.Unlock()
		q.trouble.since[s] = time.Time{}
		return told
	}
}

// silent is the error of a store that has not answered since then, if that is long.
func (q *Queue) silent(since time.Time) error {
	took := time.Since(since)
	if since.IsZero() || took < quietFor {
		return nil
	}
	if store, ok := q.kv.(interface{ Waits() error }); ok {
		if err := store.Waits(); err != nil {
			return err
		}
	}
	return fmt.Errorf("kvqueue: the store has not answered for %v", took.Round(time.Millisecond))
}

// quiet is the error of a store that has answered none of its sources for long.
func (q *Queue) quiet() error {
	q.trouble.mu.Lock()
	since := q.trouble.since
	q.trouble.mu.Unlock()
	for _, t := range since {
		if err := q.silent(t); err != nil {
			return err
		}
	}
	return nil
}

// Trouble returns the last error of the store if what asks it behind the calls cannot go on:
// nothing is claimed then. It returns nil when the store answers again. It asks nobody.
func (q *Queue) Trouble() error {
	q.trouble.mu.Lock()
	defer q.trouble.mu.Unlock()
	return q.trouble.errLocked()
}

// asked notes how the store has answered a source: err is nil if it did what it was asked for. A store
// that the program has closed is no trouble.
func (q *Queue) asked(s source, err error) {
	if errors.Is(err, ErrClosed) {
		return
	}
	switch turned := q.trouble.set(s, err); {
	case turned && err != nil:
		q.tell(Report{Kind: StoreFailed, Items: 1, Why: reason(err)})
	case turned:
		q.tell(Report{Kind: StoreBack, Items: 1})
	}
}

// A fullError is the error of a full store for those who wait for items: that it is not known
// whether a transaction was done is no matter of theirs, as nothing was handed to them.
type fullError struct{ error }

func (e fullError) Is(target error) bool { return target == ErrNoSpace }

// fullOnly has an error of a full store say nothing else.
func fullOnly(err error) error {
	if errors.Is(err, ErrNoSpace) {
		return fullError{err}
	}
	return err
}

// refuseTries answers those who would not wait, and have come before the store was asked: it is
// not known whether there are items.
func (q *Queue) refuseTries(asked time.Time, err error) {
	for _, w := range q.listed() {
		if w.try && !w.came.After(asked) && q.unlist(w) {
			w.fail(err)
		}
	}
}

// stop is the error of a call for items whose ctx has ended. It matches that of ctx, and its
// cause, and the last error of a store that is in trouble, or has not answered for long.
func (q *Queue) stop(ctx context.Context) error {
	trouble := q.Trouble()
	if trouble == nil {
		trouble = q.quiet()
	}
	return inTrouble(stop(ctx), trouble)
}

// says is the error of a call whose ctx has ended, with what the store has said to that.
func (q *Queue) says(ctx context.Context, err error) error {
	if errors.Is(err, ErrClosed) || err == ctx.Err() || err.Error() == stop(ctx).Error() {
		return q.stop(ctx)
	}
	return inTrouble(stop(ctx), err)
}

// inTrouble adds to the error of a call whose ctx has ended that of a store which is in trouble, if it is.
func inTrouble(stopped, trouble error) error {
	if trouble == nil || errors.Is(trouble, ErrClosed) {
		return stopped
	}
	return fmt.Errorf("%w; the store is in trouble: %w", stopped, trouble)
}
