package batch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file flushes what is due. The flusher is a task that is started when
// something is, and ends when nothing is any more. At most one is there: whoever
// sets scheduled under the lock starts it, and it clears scheduled in the critical
// section in which it finds nothing to do. So what is added before is seen by it,
// and what is added after starts the next one.

// A batch rests, and flushes nothing,
//
//   - after a flush that has failed, if the scope carries on: for its age, and at
//     least for afterFailure. For no longer than that if somebody waits for a flush;
//   - after a flusher has been busy for turn and has made flushesATurn: for giveWay.
//     A scope that ends waits for the flusher, which is a task of it. So goroutines
//     that are no tasks of it, and go on adding, would keep it from ending. While
//     the batch rests it can.
const (
	afterFailure = time.Second
	turn         = 200 * time.Millisecond
	flushesATurn = 3
	giveWay      = 5 * time.Millisecond
)

// dueLocked reports whether something is to be flushed now.
func (b *Batch[T]) dueLocked() bool {
	if len(b.items) == 0 || b.resting {
		return false
	}
	return b.aged ||
		b.limits.number > 0 && len(b.items) >= b.limits.number ||
		b.limits.size > 0 && b.size >= b.limits.size ||
		b.asked > b.delivered ||
		len(b.adders) > 0
}

// claimLocked reports whether the caller is to start a flusher, after unlocking.
func (b *Batch[T]) claimLocked() bool {
	if b.scheduled || b.stopped || b.closed || !b.dueLocked() {
		return false
	}
	b.scheduled = true
	b.starts.Add(1)
	return true
}

// start starts the flusher that the caller has claimed.
//
// The scope cannot have ended, although the caller may be no task of it: the exit
// hook waits for starts.
func (b *Batch[T]) start() {
	defer b.starts.Done()
	if b.ctx.Err() != nil {
		b.stop()
		return
	}
	async.Go(b.ctx, b.run, async.Name(b.name), async.On(ownGoroutine{}))
}

// ownGoroutine keeps flushes off the executor of the scope: Add is not to block
// because a pool is full.
type ownGoroutine struct{}

func (ownGoroutine) TryExecute(task func()) bool {
	go task()
	return true
}

func (g ownGoroutine) Execute(task func()) error {
	g.TryExecute(task)
	return nil
}

// stop notes that the ctx of the batch is done.
func (b *Batch[T]) stop() {
	b.mu.Lock()
	b.stopped, b.scheduled = true, false
	b.mu.Unlock()
}

// run is the flusher.
func (b *Batch[T]) run(ctx context.Context) error {
	begin := time.Now()
	for n := 0; ; n++ {
		if ctx.Err() != nil {
			b.stop()
			return nil
		}
		items, size := b.take(n >= flushesATurn && time.Since(begin) >= turn)
		if len(items) == 0 {
			return nil
		}
		if err := b.deliver(ctx, items, size); err != nil {
			return err
		}
	}
}

// take returns what is to be flushed now. If it is nothing, the flusher is over. It
// is over as well if its turn is.
func (b *Batch[T]) take(over bool) (items []T, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch due := b.dueLocked(); {
	case b.closed || !due:
		b.scheduled = false
	case over:
		b.restLocked(giveWay, giveWay)
	default:
		return b.takeLocked()
	}
	return nil, 0
}

// restLocked has the flusher be over, and no other started before d has passed, or
// atLeast if somebody waits for a flush. Then what there is is flushed.
func (b *Batch[T]) restLocked(atLeast, d time.Duration) {
	now := time.Now()
	b.scheduled, b.resting = false, true
	b.awake, b.rested = now.Add(atLeast), now.Add(d)
	if !b.closed {
		b.setTimerLocked(d)
	}
}

// wakeLocked is called when somebody begins to wait for a flush: that is not put off
// for the age.
func (b *Batch[T]) wakeLocked() {
	if b.resting && !b.closed && b.awake.Before(b.rested) {
		b.rested = b.awake
		b.setTimerLocked(time.Until(b.awake))
	}
}

// takeLocked takes everything that waits.
func (b *Batch[T]) takeLocked() (items []T, size int) {
	items, size = b.items, b.size
	b.items, b.size, b.aged = nil, 0, false
	b.flying, b.hint = len(items), len(items)
	if b.timer != nil {
		b.timer.Stop()
	}
	return items, size
}

// deliver flushes items, and returns the error of flush.
func (b *Batch[T]) deliver(ctx context.Context, items []T, size int) error {
	err := errUnfinished
	defer func() { b.land(items, size, err) }() // also on a panic and on Goexit
	err = b.call(ctx, items)
	return err
}

// A flight is one call of flush.
type flight struct{ over atomic.Bool }

// call calls flush in a scope of its own, so what it starts has ended when call
// returns.
func (b *Batch[T]) call(ctx context.Context, items []T) error {
	f := new(flight)
	defer f.over.Store(true)
	ctx = context.WithValue(ctx, inside[T]{b}, f)
	return async.Scope(ctx, func(ctx context.Context) error { return b.flush(ctx, items) }, async.Name(b.name))
}

// land notes how the flush of items has ended, and answers those who wait for it.
func (b *Batch[T]) land(items []T, size int, err error) {
	b.mu.Lock()
	b.flying = 0
	var adders, flushers []*waiter[T]
	if err == nil {
		b.delivered += uint64(len(items))
		adders, flushers = b.admitLocked(), b.servedLocked()
	} else {
		b.returnLocked(items, size)
		adders, flushers = b.adders, b.flushers
		b.adders, b.flushers = nil, nil
	}
	b.mu.Unlock()
	answerAll(adders, err)
	answerAll(flushers, err)
}

// returnLocked puts items back to where they were, and the flusher is over.
//
// The scope is about to be cancelled, so no other flush may start before that. If
// OnFailure has it carry on, the batch rests, so that a receiver that is gone is
// not called in a loop.
func (b *Batch[T]) returnLocked(items []T, size int) {
	b.items = append(items, b.items...)
	b.size = plus(size, b.size)
	b.restLocked(afterFailure, max(b.limits.age, afterFailure))
}

// setTimerLocked has timeIsUp called d from now, and not before.
func (b *Batch[T]) setTimerLocked(d time.Duration) {
	if b.timer == nil {
		b.timer = time.AfterFunc(d, b.timeIsUp)
		return
	}
	b.timer.Reset(d)
}

// timeIsUp is called by the timer: the oldest item has waited for its age, or the
// batch has rested. It may come too late, when what it was set for is over and the
// timer was set again: so the times tell.
func (b *Batch[T]) timeIsUp() {
	b.mu.Lock()
	switch {
	case b.resting:
		if !time.Now().Before(b.rested) {
			b.resting, b.aged = false, true
		}
	case b.limits.age > 0 && len(b.items) > 0 && time.Since(b.oldest) >= b.limits.age:
		b.aged = true
	}
	start := b.claimLocked()
	b.mu.Unlock()
	if start {
		b.start()
	}
}
