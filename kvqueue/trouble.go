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

	turns   []error // with which the trouble has begun, or nil if it has ended, in order; they were not told yet
	telling bool    // somebody tells one of them

	observers int       // that are being told something that has come of an answer
	observed  time.Time // the last of them has returned
}

func (t *trouble) errLocked() error {
	for _, err := range t.of {
		if err != nil {
			return err
		}
	}
	return nil
}

// setLocked notes the outcome of a source. If the trouble has begun or ended by it, that is to be told.
func (t *trouble) setLocked(s source, err error) {
	before := t.errLocked() != nil
	t.of[s] = err
	if before != (t.errLocked() != nil) {
		t.turns = append(t.turns, err)
	}
}

// turn returns the next that is to be told, if nobody tells another. Whoever has it calls told.
func (t *trouble) turn() (err error, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.telling || len(t.turns) == 0 {
		return nil, false
	}
	err, t.turns, t.telling = t.turns[0], t.turns[1:], true
	return err, true
}

func (t *trouble) told() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.telling = false
}

// tellTurns tells when the trouble has begun and ended, one after another: this call, or another that is at it.
func (q *Queue) tellTurns() {
	for err, ok := q.trouble.turn(); ok; err, ok = q.trouble.turn() {
		func() {
			defer q.trouble.told()
			if err != nil {
				q.tell(Report{Kind: StoreFailed, Items: 1, Why: reason(err)})
			} else {
				q.tell(Report{Kind: StoreBack, Items: 1})
			}
		}()
	}
}

// observes notes that an observer is being told something, until the function is called that it returns: the
// store is not asked meanwhile.
func (t *trouble) observes() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observers++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.observers--
		t.observed = time.Now()
	}
}

// silence is for how long the store has not answered what it was asked then. The time in which observers were told
// something is none of it.
func (t *trouble) silence(since time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case since.IsZero() || t.observers > 0:
		return 0
	case t.observed.After(since):
		since = t.observed
	}
	return time.Since(since)
}

// Those who wait are told that the store has not answered for quietFor; after quietLong that is trouble.
const (
	quietFor  = 200 * time.Millisecond
	quietLong = 5 * time.Second
)

// asks notes that a source asks the store, until the function is called that it returns, which reports whether
// it was told as trouble meanwhile that the store does not answer.
func (q *Queue) asks(s source) (answered func() (told bool)) {
	t, began, told := &q.trouble, time.Now(), false
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since[s] = began
	var late *time.Timer // the function below comes to it when mu is free
	late = time.AfterFunc(quietLong, func() {
		silence, err := t.silence(began), q.silent(began)
		t.mu.Lock()
		switch {
		case t.since[s] != began || t.of[s] != nil:
		case silence < quietLong:
			late.Reset(quietLong - silence)
		default:
			told = true
			t.setLocked(s, err)
		}
		t.mu.Unlock()
		q.tellTurns()
	})
	return func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		late.Stop()
		t.since[s] = time.Time{}
		return told
	}
}

// silent is the error of a store that has not answered since then, if that is long.
func (q *Queue) silent(since time.Time) error {
	took := q.trouble.silence(since)
	if took < quietFor {
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
	q.trouble.mu.Lock()
	q.trouble.setLocked(s, err)
	q.trouble.mu.Unlock()
	q.tellTurns()
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
	if errors.Is(err, ErrClosed) || bare(ctx, err) {
		return q.stop(ctx)
	}
	return inTrouble(stop(ctx), err)
}

// saysSince is says for a call that has asked the store itself, at that time.
func (q *Queue) saysSince(ctx context.Context, err error, asked time.Time) error {
	if err != nil && bare(ctx, err) {
		err = q.silent(asked)
	}
	return inTrouble(stop(ctx), ignore(err))
}

// bare reports whether an error says that ctx has ended and nothing else.
func bare(ctx context.Context, err error) bool {
	return err == ctx.Err() || err.Error() == stop(ctx).Error()
}

// inTrouble adds to the error of a call whose ctx has ended that of a store which is in trouble, if it is.
func inTrouble(stopped, trouble error) error {
	if trouble == nil || errors.Is(trouble, ErrClosed) {
		return stopped
	}
	return fmt.Errorf("%w; the store is in trouble: %w", stopped, trouble)
}
