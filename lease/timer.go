package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file is the timer of a keeper, which fires when something is to be done, and the tasks
// that do it.

const (
	// lookOften is how often the keeper looks at the clock at least: the timers of Go stand
	// still while the machine is suspended, and are late by that time.
	lookOften = time.Second
	// mostFailed is how many errors of tasks are kept for the scope.
	mostFailed = 32
)

// lookLocked has the keeper look at its leases at the time at, unless it does before.
func (k *Keeper[T]) lookLocked(at time.Duration) {
	if at < k.next {
		k.next = at
		k.setTimerLocked()
	}
}

// setTimerLocked sets the timer for the next look. While nothing is kept it is stopped; one
// that has fired then finds nothing to do.
func (k *Keeper[T]) setTimerLocked() {
	switch pause := min(max(k.next-k.Now(), 0), lookOften); {
	case len(k.kept) == 0:
		if k.next = never; k.timer != nil {
			k.timer.Stop()
		}
	case k.timer == nil:
		k.timer = time.AfterFunc(pause, k.look)
	default:
		k.timer.Reset(pause)
	}
}

// look does what is to be done now. The timer calls it, and it waits for no call of the
// renew function.
func (k *Keeper[T]) look() {
	k.set.clock.see()
	k.mu.Lock()
	late := k.roundLocked(k.Now())
	k.setTimerLocked()
	k.mu.Unlock()
	for _, l := range late {
		_ = l.Err()
	}
}

// startLocked starts a task. It stands at the root, where neither a limit nor an executor of
// the scope keeps it waiting.
func (k *Keeper[T]) startLocked(what string, f func()) {
	run := func(context.Context) error { f(); return nil }
	task := async.Start(context.Background(), run, async.Name(k.set.name+": "+what))
	if !k.set.unscoped { // else the root is told what fails
		k.pruneLocked()
		k.tasks = append(k.tasks, task)
	}
}

// pruneLocked forgets tasks that have ended, and notes what has failed in them.
func (k *Keeper[T]) pruneLocked() {
	running := k.tasks[:0]
	for _, task := range k.tasks {
		_, err, ok := task.Result()
		switch {
		case !ok:
			running = append(running, task)
		case err != nil && len(k.failed) < mostFailed:
			k.failed = append(k.failed, err)
		}
	}
	clear(k.tasks[len(running):])
	k.tasks = running
}

// forget has a lease renewed no more. tell, unless it is nil, is called by a task.
func (k *Keeper[T]) forget(l *Lease, tell func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kept, l)
	if len(k.kept) == 0 {
		k.setTimerLocked()
	}
	if tell != nil && k.closed == nil {
		k.startLocked("loss", tell)
	}
}

// end is an exit hook: the tasks of the scope have ended.
func (k *Keeper[T]) end(ctx context.Context, _ error) error {
	k.mu.Lock()
	kept := slices.Collect(maps.Keys(k.kept))
	k.mu.Unlock()
	for _, l := range kept {
		_ = l.Err() // that of one which is over is told
	}
	k.mu.Lock()
	k.closed = fmt.Errorf("lease: the keeper has ended: %w", async.ErrScopeEnded)
	kept = slices.Collect(maps.Keys(k.kept))
	k.kept = map[*Lease]*entry[T]{}
	k.setTimerLocked()
	k.mu.Unlock()
	for _, l := range kept {
		l.endFor(async.ErrScopeEnded)
		l.leave()
	}
	k.mu.Lock()
	tasks, errs := k.tasks, k.failed
	k.tasks, k.failed = nil, nil
	k.mu.Unlock()
	for _, task := range tasks {
		if _, err := task.Wait(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
