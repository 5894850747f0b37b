package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file is the task of a keeper that waits until something is to be done.

const (
	// lookOften is how often the loop looks at the clock at least: the timers of Go stand
	// still while the machine is suspended, and are late by that time.
	lookOften = time.Second
	// mostFailed is how many errors of loops are kept for the scope.
	mostFailed = 32
)

// errNoLoop is why leases have ended whose keeper has panicked.
var errNoLoop = errors.New("lease: the keeper has failed")

// startLocked starts the loop.
func (k *Keeper[T]) startLocked() error {
	bell := make(chan struct{}, 1)
	k.bell, k.next, k.runs = bell, never, true
	run := func(ctx context.Context) error { return k.run(ctx, bell) }
	loop := async.Start(context.Background(), run, async.Name(k.set.name))
	k.pruneLocked()
	k.loops = append(k.loops, loop)
	select {
	case <-loop.Done(): // refused: it cannot have ended while something is kept
		k.runs = false
		_, err, _ := loop.Result()
		return fmt.Errorf("lease: the keeper cannot renew: %w", err)
	default:
		return nil
	}
}

// pruneLocked forgets loops that have ended, and notes what has failed in them.
func (k *Keeper[T]) pruneLocked() {
	running := k.loops[:0]
	for _, loop := range k.loops {
		_, err, ok := loop.Result()
		switch {
		case !ok:
			running = append(running, loop)
		case err != nil && len(k.failed) < mostFailed:
			k.failed = append(k.failed, err)
		}
	}
	clear(k.loops[len(running):])
	k.loops = running
}

// lookLocked has the loop look at its leases at the time at, unless it does before.
func (k *Keeper[T]) lookLocked(at time.Duration) {
	if at >= k.next || !k.runs {
		return
	}
	k.next = at
	select {
	case k.bell <- struct{}{}:
	default: // it rings already
	}
}

// run is the loop. It ends when nothing is kept, and is cancelled by async.Shutdown only.
func (k *Keeper[T]) run(ctx context.Context, bell <-chan struct{}) error {
	idle := false
	defer func() {
		if !idle { // cancelled; what is kept now may be another loop's otherwise
			k.endAll(cmp.Or(context.Cause(ctx), errNoLoop), true)
		}
	}()
	timer := time.NewTimer(lookOften)
	defer timer.Stop()
	for ctx.Err() == nil {
		k.set.clock.see()
		now := k.Now()
		r, ok := k.round(ctx, now)
		if idle = !ok; idle {
			return nil
		}
		for _, l := range r.late {
			_ = l.Err()
		}
		for _, tell := range r.losses {
			async.Start(ctx, func(context.Context) error { tell(); return nil }, async.Name(k.set.name+": loss"))
		}
		for _, c := range r.calls {
			async.Start(ctx, func(context.Context) error { k.send(c); return nil }, async.Name(k.set.name+": renewal"))
		}
		timer.Reset(k.pause())
		select {
		case <-bell:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// pause returns how long the loop waits.
func (k *Keeper[T]) pause() time.Duration {
	now := k.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	return min(max(k.next-now, 0), lookOften)
}

// forget has a lease renewed no more. tell, unless it is nil, is called by a task.
func (k *Keeper[T]) forget(l *Lease, tell func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kept, l)
	if tell != nil && k.runs {
		k.losses = append(k.losses, tell)
	}
	if len(k.losses) > 0 || len(k.kept) == 0 {
		k.lookLocked(0) // the loop tells, or ends
	}
}

// endAll ends what is kept, because of err. stops says that the loop does not go on.
func (k *Keeper[T]) endAll(err error, stops bool) {
	k.mu.Lock()
	kept := k.kept
	k.kept = map[*Lease]*entry[T]{}
	k.lookLocked(0)
	k.runs = k.runs && !stops
	k.mu.Unlock()
	for l := range kept {
		l.endFor(err)
		l.leave()
	}
}

// end is an exit hook: the tasks of the scope have ended.
func (k *Keeper[T]) end(ctx context.Context, _ error) error {
	k.mu.Lock()
	k.closed = fmt.Errorf("lease: the keeper has ended: %w", async.ErrScopeEnded)
	k.mu.Unlock()
	k.endAll(async.ErrScopeEnded, false)
	k.mu.Lock()
	loops, errs := k.loops, k.failed
	k.loops, k.failed = nil, nil
	k.mu.Unlock()
	for _, loop := range loops {
		if _, err := loop.Wait(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
