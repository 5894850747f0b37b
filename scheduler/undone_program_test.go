package scheduler_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/scheduler"
)

// TestAScopeIsNilIfAndOnlyIfNothingWasLeftUndone, whatever ends it and its
// workers, and whenever.
func TestAScopeIsNilIfAndOnlyIfNothingWasLeftUndone(t *testing.T) {
	undone, complete := 0, 0
	for seed := range uint64(2_000 / scheduler.RaceFactor) {
		synctest.Test(t, func(t *testing.T) {
			defer bound(seed)()
			rng := rand.New(rand.NewPCG(seed, 5))
			tasks, err := runAndEnd(t, rng)
			lost := 0
			for _, task := range tasks {
				if s := task.State(); s != scheduler.Done {
					require.Equal(t, scheduler.Cancelled, s)
					lost++
				}
			}
			if lost > 0 {
				undone++
			} else {
				complete++
			}
			require.Equal(t, lost > 0, err != nil, "seed %d: %d of %d undone, %v", seed, lost, len(tasks), err)
		})
	}
	require.NotZero(t, undone)
	require.NotZero(t, complete)
}

// runAndEnd opens a scope with workers that have something to do, in which
// nothing fails, and returns what Scope has returned.
func runAndEnd(t *testing.T, rng *rand.Rand) (tasks []scheduler.Task, err error) {
	ms := func(n int) time.Duration { return time.Duration(1+rng.IntN(n)) * time.Millisecond }
	parent, cancel := context.WithCancel(asynctest.Context(t))
	defer cancel()
	var opts []async.ScopeOption
	switch rng.IntN(4) {
	case 0:
		opts = append(opts, async.Timeout(ms(40)))
	case 1:
		time.AfterFunc(ms(40), cancel)
	}
	pool := []scheduler.Executor{scheduler.Goroutines(), oneSlot(), oneSlot().ExecutorFunc, limitedGroup()}[rng.IntN(4)]
	s := scheduler.New(pool, scheduler.Batch(1+rng.IntN(4)))
	err = async.Scope(parent, func(ctx context.Context) error {
		for range 1 + rng.IntN(3) {
			ctx := ctx
			switch rng.IntN(6) {
			case 0:
				short, cancel := context.WithTimeout(ctx, ms(40))
				context.AfterFunc(ctx, cancel)
				ctx = short
			case 1:
				ctx = context.WithoutCancel(ctx)
			}
			w := s.NewWorker(ctx)
			for range rng.IntN(10) {
				d := ms(5)
				if task, err := w.Schedule(func(context.Context) { time.Sleep(d) }); err == nil {
					tasks = append(tasks, task)
				}
			}
			_, _ = w.ScheduleAfter(time.Hour, nothing)
			_, _ = w.ScheduleEvery(0, ms(5), nothing)
		}
		time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
		return nil
	}, opts...)
	return tasks, err
}
