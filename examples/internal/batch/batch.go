// Package batch says when what has been collected is to be sent: when it is big
// enough, or when its oldest byte has waited long enough, and at the end.
//
// A [Batch] counts and holds nothing: the bytes may be in a file, as those of
// examples/tracepatch are, so that a slow receiver does not hold up who writes
// them, and the receiver may say how old they may become. Items that are held in
// memory are for package batch of the library.
//
//	err := async.Scope(ctx, func(ctx context.Context) error {
//		b := batch.New(ctx, batch.Limits{Size: 4096, Age: time.Second}, upload)
//		for line := range lines {
//			n, err := file.WriteString(line)
//			b.Added(n)
//			...
//		}
//	}) // upload has been called for all that was added
//
// The age is that of the oldest byte. A timer that every new line starts again,
// as in a select with time.After in a loop, never fires while lines keep
// coming.
package batch

import (
	"context"
	"sync"
	"time"

	"github.com/ambit-go/ambit/async"
)

// Limits say when a batch is due: at Size bytes, or when the oldest of them has
// waited for Age. What is not positive is no limit.
type Limits struct {
	Size int
	Age  time.Duration
}

// A Batch calls a function when there is enough to send, or when it has waited
// for long enough. Its methods may be called by any number of goroutines, also
// after the scope has ended; they do not block.
type Batch struct {
	flush func(ctx context.Context) error

	mu     sync.Mutex
	limits Limits
	held   int       // added and not flushed
	oldest time.Time // when the first of them was added, if held > 0

	// changed is resolved when the loop has something to look at, and then
	// replaced. A byte that joins others which wait already is no such thing:
	// the timer runs on.
	changed *async.Promise[struct{}]
}

// New returns a Batch that calls flush when something is due. flush is never
// called by two goroutines at once; what is added while it runs is part of the
// next batch, and its age counts from then.
//
// The Batch belongs to the scope of ctx. An error of flush fails that scope.
// When the scope ends, however it ends, flush is called once more if anything is
// left, also what a cancelled flush has left: after all tasks of the scope have
// ended, with a ctx that is not cancelled and lasts as long as an exit hook of
// the scope may take; see [async.HookTimeout].
func New(ctx context.Context, limits Limits, flush func(ctx context.Context) error) *Batch {
	b := &Batch{flush: flush, limits: limits}
	async.OnExit(ctx, func(ctx context.Context, _ error) error {
		b.mu.Lock()
		left := b.held > 0
		b.mu.Unlock()
		if !left {
			return nil
		}
		return b.send(ctx)
	})
	async.Go(ctx, b.run, async.Daemon(), async.Name("batch"))
	return b
}

// Added says that n bytes more are there to be sent.
func (b *Batch) Added(n int) {
	if n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	first, full := b.held == 0, b.fullLocked()
	if first {
		b.oldest = time.Now()
	}
	b.held += n
	if first || !full && b.fullLocked() {
		b.wakeLocked()
	}
}

// SetAge changes how long the oldest byte may wait, that of the current batch
// included.
func (b *Batch) SetAge(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limits.Age != d {
		b.limits.Age = d
		b.wakeLocked()
	}
}

func (b *Batch) fullLocked() bool { return b.limits.Size > 0 && b.held >= b.limits.Size }

func (b *Batch) wakeLocked() {
	if b.changed != nil {
		b.changed.Resolve(struct{}{})
		b.changed = nil
	}
}

// run flushes what is due until it is told to stop.
func (b *Batch) run(ctx context.Context) error {
	for {
		if err := b.due(ctx); err != nil {
			return err
		}
		if err := b.send(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx) // the last flush makes up for it, or fails
			}
			return err
		}
	}
}

// due waits until something is due.
func (b *Batch) due(ctx context.Context) error {
	for ctx.Err() == nil {
		wait, changed := b.look(ctx)
		if wait < 0 {
			return nil
		}
		// Either is news: a change, or that the time is up.
		_, _ = changed.Await(ctx, wait)
	}
	return context.Cause(ctx)
}

// look returns how long it is until something is due, 0 if only a change can
// tell, -1 if it is due now; and a future of that change.
//
// The future is made under the lock that a change needs, so none is missed
// between the look and the wait.
func (b *Batch) look(ctx context.Context) (wait time.Duration, changed *async.Future[struct{}]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wakeLocked() // the one of the last look has been waited for
	if b.held > 0 {
		if b.fullLocked() {
			return -1, nil
		}
		if b.limits.Age > 0 {
			if wait = b.limits.Age - time.Since(b.oldest); wait <= 0 {
				return -1, nil
			}
		}
	}
	changed, b.changed = async.NewPromise[struct{}](ctx, async.Name("batch changed"))
	return wait, changed
}

// send flushes what is held. If that fails it is held again, as old as it was:
// the next flush may do better, at the end of the scope if not before.
func (b *Batch) send(ctx context.Context) error {
	b.mu.Lock()
	n, oldest := b.held, b.oldest
	b.held = 0
	b.mu.Unlock()
	err := b.flush(ctx)
	if err != nil {
		b.mu.Lock()
		b.held, b.oldest = b.held+n, oldest
		b.mu.Unlock()
	}
	return err
}
