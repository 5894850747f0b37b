package taskqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
	"github.com/ambit-go/ambit/taskqueue/store"
)

const (
	// idle is how long a fetcher sleeps at most, give or take a twentieth: a hint of the
	// store may get lost. It is so long that an idle worker asks less than once a second
	// for each queue, with all else that it sends.
	idle = 1100 * time.Millisecond
	// maxIdle is how long is waited at most after an error of the store.
	maxIdle = time.Second
	// callTimeout bounds each call of the store.
	callTimeout = 5 * time.Second
)

// A fetcher claims tasks of one queue for a worker.
type fetcher struct {
	w      *worker
	queue  string
	claims int // so far; each claim has a nonce of its own
}

// loop claims until ctx is done: it reserves free places, claims as many tasks, and
// then sleeps until the time that the store has told.
func (f *fetcher) loop(ctx, live context.Context) {
	failures := 0
	for ctx.Err() == nil {
		n, ends := f.w.reserve(ctx, f.queue)
		if n == 0 {
			return
		}
		got, sent, err := f.claim(ctx, live, n)
		f.w.change(func() {
			f.w.free += n - len(got.Tasks)
			share := f.w.shares[f.queue]
			share.took(len(got.Tasks) - n)
			share.asks = false
			share.wants = err == nil && len(got.Tasks) == n
			// A run that has ended meanwhile may have enqueued what this claim did not see.
			if idle := ends == f.w.ends && err == nil && len(got.Tasks) == 0 && (got.NextDue.IsZero() || got.NextDue.After(got.Now)); idle {
				f.w.idle[f.queue] = true
			} else {
				delete(f.w.idle, f.queue)
			}
		})
		for i := range got.Tasks {
			f.w.begin(live, f.queue, &got.Tasks[i], sent)
		}
		f.w.tellClaimed(f.queue, &got)
		switch {
		case permanent(err):
			f.w.fail(about(err, "queue", f.queue))
			return
		case err != nil:
			_ = async.Sleep(ctx, pause(failures))
			failures++
		case len(got.Tasks) < n:
			failures = 0
			f.rest(ctx, got, ends)
		}
	}
}

// claim claims up to n tasks. A claim whose answer is lost is repeated, so that no
// task is held for nobody: once more, too, if the worker stops meanwhile.
func (f *fetcher) claim(ctx, live context.Context, n int) (got Claimed, sent time.Duration, err error) {
	f.claims++
	r := store.ClaimRequest{Queue: f.queue, Worker: f.w.o.name, Nonce: fmt.Sprint(f.w.nonce, f.claims), Max: n, Lease: f.w.o.lease}
	if f.w.o.weighted {
		r.Weigh = rand.Uint64() | 1
	}
	for failures := 0; ; failures++ {
		last := ctx.Err() != nil
		sent = f.w.clock.Now()
		call, cancel := context.WithTimeout(live, min(callTimeout, f.w.o.lease/3))
		got, err = f.w.q.store.Claim(call, r)
		cancel()
		if err == nil {
			return got, sent, nil
		}
		f.w.tell(Event{Kind: EventStore, Queue: f.queue, Err: err})
		if last || permanent(err) {
			return Claimed{}, sent, err
		}
		_ = async.Sleep(ctx, pause(failures))
	}
}

// permanent reports whether a store would say the same again.
func permanent(err error) bool {
	var wrong *InvalidError
	return errors.As(err, &wrong) || errors.Is(err, ErrClosed)
}

// rest sleeps until something may be due, or, if the worker ends when nothing is, until
// the last run has ended: then it is to be found out whether that is so.
func (f *fetcher) rest(ctx context.Context, got Claimed, ends int) {
	if !f.w.o.untilEmpty {
		f.wait(ctx, got)
		return
	}
	waiting, wake := context.WithCancel(ctx)
	last := async.Start(waiting, func(ctx context.Context) error {
		if f.w.await(ctx, func() bool { return len(f.w.runs) == 0 && f.w.ends != ends }) {
			wake()
		}
		return nil
	}, async.Name("await the last run"))
	f.wait(waiting, got)
	wake()
	_, _ = last.Join(ctx) // it only stops
}

// wait sleeps until something may be due.
func (f *fetcher) wait(ctx context.Context, got Claimed) {
	d := min(idle-idle/20+rand.N(idle/10), f.w.often())
	if !got.NextDue.IsZero() {
		d = min(d, max(got.NextDue.Sub(got.Now), 0))
	}
	if err := f.w.q.store.Wait(ctx, f.queue, got.Seen, clock.Now().Add(d)); err != nil && ctx.Err() == nil {
		f.w.tell(Event{Kind: EventStore, Queue: f.queue, Err: err})
		_ = async.Sleep(ctx, maxIdle) // the store cannot tell
	}
}
