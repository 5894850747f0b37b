package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A waiter waits for targets.
type waiter struct {
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	interval time.Duration // the longest pause between attempts
	steady   int           // connections in a row
	tell     func(format string, args ...any)
}

// An outcome is what became of a target.
type outcome struct {
	target
	took     time.Duration
	attempts int
	accepted int   // attempts that got a connection
	last     error // of the last attempt that did not
	err      error // why it is not up; nil if it is
}

// wait waits for all targets, or until any is up. It returns an outcome for each,
// in their order, also when ctx ends before, and nothing that it has started
// runs on then.
func (w *waiter) wait(ctx context.Context, targets []target, any bool) []outcome {
	if any {
		return w.waitAny(ctx, targets)
	}
	return w.waitAll(ctx, targets)
}

// waitAll gives every target its time. That one is not up is the outcome of that
// one, and no failure of the whole. When ctx ends, the items' results have its
// error, and their values tell more.
func (w *waiter) waitAll(ctx context.Context, targets []target) []outcome {
	all := async.ForkJoin(ctx, targets, func(ctx context.Context, t target) (outcome, error) {
		return w.waitOne(ctx, t), nil
	})
	results, _ := all.Await(context.WithoutCancel(ctx), 0) // ctx ends the work, and that the wait
	outcomes := make([]outcome, len(targets))
	for i, t := range targets {
		outcomes[i] = results[i].Value
		if outcomes[i].target != t { // it was never begun
			outcomes[i] = outcome{target: t, err: results[i].Err}
		}
	}
	return outcomes
}

// waitAny has the first target that is up decide. Those that lose are told so by
// their context; the scope waits until they have noticed, so that each has
// written its outcome when the scope returns.
func (w *waiter) waitAny(ctx context.Context, targets []target) []outcome {
	outcomes := make([]outcome, len(targets))
	var tasks []func(context.Context) (struct{}, error)
	for i, t := range targets {
		tasks = append(tasks, func(ctx context.Context) (struct{}, error) {
			outcomes[i] = w.waitOne(ctx, t)
			return struct{}{}, outcomes[i].err
		})
	}
	err := async.Scope(ctx, func(ctx context.Context) error {
		_, err := async.Any(ctx, tasks...).Await(ctx, 0)
		return err
	}, async.Name("any"))
	if err == nil {
		err = async.ErrDecided
	}
	for i, t := range targets {
		if outcomes[i].target != t { // it was never begun
			outcomes[i] = outcome{target: t, err: err}
		}
	}
	return outcomes
}

// waitOne waits for one target until it is up, its limit has passed, or ctx ends.
func (w *waiter) waitOne(ctx context.Context, t target) outcome {
	begin := time.Now()
	a := &attempts{waiter: w, target: t}
	poll := async.Poll(ctx, a.pause, a.probe, async.Name(t.name), async.Timeout(t.limit))
	_, err := poll.Await(context.WithoutCancel(ctx), 0)
	o := outcome{target: t, took: time.Since(begin), attempts: a.made, accepted: a.accepted, last: a.last, err: err}
	if err == nil {
		w.tell("%s is up", t.name)
	}
	return o
}

// attempts are those to reach one target. Only its poll uses them.
type attempts struct {
	*waiter
	target target

	made, accepted int
	streak         int // connections in a row
	last           error
}

// attemptLimit is how long a host may take to answer that drops what it does not
// want. It is asked again then: it may have changed its mind.
const attemptLimit = 5 * time.Second

// probe makes one attempt. That it fails is no error of the poll.
func (a *attempts) probe(ctx context.Context) (struct{}, bool, error) {
	limited, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	a.made++
	conn, err := a.dial(limited, "tcp", a.target.address)
	switch {
	case err == nil:
		_ = conn.Close() // it has shown that it is there
		a.accepted++
		a.streak++
		if a.streak < a.steady {
			a.tell("%s accepts connections, %d of %d", a.target.name, a.streak, a.steady)
		}
		return struct{}{}, a.streak >= a.steady, nil
	case ended(ctx): // which is why
		return struct{}{}, false, async.Again(nil)
	}
	if a.last == nil || a.streak > 0 || a.last.Error() != err.Error() {
		a.tell("%s is not up: %v", a.target.name, reason(err))
	}
	a.streak, a.last = 0, err
	return struct{}{}, false, async.Again(err)
}

// ended reports whether ctx has ended or is about to: a connection has the same
// deadline, and may be a little faster.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// pause is how long to wait after an attempt: longer and longer while a target
// does not answer, and short to see whether one that did goes on to.
func (a *attempts) pause(attempt int) time.Duration {
	if a.streak > 0 {
		return min(100*time.Millisecond, a.interval)
	}
	return async.Jitter(0.2, async.Backoff(min(10*time.Millisecond, a.interval), a.interval))(attempt)
}

// reason is err without the address, which its reader knows.
func reason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
