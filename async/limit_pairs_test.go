package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// limitPairs are options that a limited task may have besides.
var limitPairs = map[string][]async.TaskOption{
	"none":      nil,
	"Timeout":   {async.Timeout(3 * time.Second)},
	"Daemon":    {async.Daemon()},
	"Heartbeat": {async.Heartbeat(3 * time.Second)},
	"OnAbort":   {async.OnAbort(func(ctx context.Context, _ error) error { return async.Sleep(ctx, time.Second) })},
	"Grace":     {async.Grace(2 * time.Second)},
	"Priority":  {async.Priority(3)},
	"refused":   {async.On(pool(func(func()) error { return errFull }))},
	"dropped":   {async.On(pool(func(func()) error { return nil }))},
	"twice":     {async.On(pool(func(task func()) error { go task(); go task(); return nil }))},
}

// TestNoPairOfOptionsLosesASlot stops tasks at every point of their way: before
// they are started, in the queue, while they run, wait, and after they have
// ended. Afterwards all slots are there.
func TestNoPairOfOptionsLosesASlot(t *testing.T) {
	const n = 2
	for name, options := range limitPairs {
		for exName, executor := range limitedOn {
			if exName == "refusing" {
				continue // there is a pair for it
			}
			for _, nested := range []int{0, 1} {
				t.Run(fmt.Sprint(name, "/", exName, "/", nested), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						_ = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
							stopAtEveryPoint(t, ctx, options, nested)
							allSlotsAreThere(t, ctx, n)
							return nil
						}, async.Limit(n), async.On(executor()), async.OnFailure(func(error) error { return nil }))
					})
				})
			}
		}
	}
}

// stopAtEveryPoint starts tasks with options in a scope of its own, and stops
// them at some point.
func stopAtEveryPoint(t *testing.T, ctx context.Context, options []async.TaskOption, nested int) {
	scope := []async.ScopeOption{async.Timeout(30 * time.Second)}
	if nested > 0 {
		scope = append(scope, async.Limit(nested))
	}
	done, stop := context.WithCancel(ctx)
	stop()
	err := async.Scope(ctx, func(ctx context.Context) error {
		work := func(ctx context.Context) (int, error) {
			f := async.Start(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) })
			_, err := f.Wait(ctx)
			return 1, errors.Join(err, async.Sleep(ctx, 4*time.Second))
		}
		for i := range 12 {
			f := async.Execute(ctx, work, options...)
			switch i % 4 {
			case 0:
				f.Cancel(errLimitWhy)
			case 1:
				_, _ = f.Await(ctx, time.Duration(i)*time.Second/2)
			case 2:
				time.AfterFunc(time.Duration(i)*time.Second/2, func() { f.Cancel(errLimitWhy) })
			}
			_, _ = async.Execute(done, work, options...).Wait(ctx)
			_, _ = async.ForkJoin(done, []int{1, 2, 3}, func(ctx context.Context, _ int) (int, error) { return work(ctx) }).Wait(ctx)
			_, _ = async.Race(ctx, work, answer, work).Await(ctx, time.Second)
		}
		return nil
	}, scope...)
	t.Log(err)
}

// allSlotsAreThere has n tasks meet, and no more than n.
func allSlotsAreThere(t *testing.T, ctx context.Context, n int) {
	var c runCount
	var all []*async.Future[int]
	for range 3 * n {
		all = append(all, async.Execute(ctx, func(context.Context) (int, error) {
			c.enter()
			defer c.out()
			time.Sleep(time.Second)
			return 1, nil
		}, async.On(pool(func(task func()) error { go task(); return nil }))))
	}
	for _, r := range async.AwaitAll(ctx, time.Minute, all...) {
		require.NoError(t, r.Err)
	}
	require.EqualValues(t, n, c.most.Load())
}

func TestAScopeThatLeavesQueuedTasksBehindLosesNoSlot(t *testing.T) {
	limitedScope(t, 2, func(t *testing.T, ctx context.Context) error {
		gate := make(chan struct{})
		var ran atomic.Int32
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { <-gate; return nil })
			async.Go(ctx, func(context.Context) error { <-gate; return nil })
			for range 3 {
				async.Go(context.WithoutCancel(ctx), func(context.Context) error { ran.Add(1); return nil })
			}
			return errLimitWhy
		}, async.DetachAfter(time.Second))
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Zero(t, ran.Load())
		close(gate)
		allSlotsAreThere(t, ctx, 2)
		require.EqualValues(t, 3, ran.Load(), "what queues under WithoutCancel goes on at the root")
		return nil
	})
}

// TestADaemonThatQueuesIsDismissed: nothing will ever give it a slot, if the
// slots are held by daemons that are stubborn.
func TestADaemonThatQueuesIsDismissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				return ctx.Err()
			}, async.Daemon())
			for range 3 {
				async.Go(ctx, func(context.Context) error { t.Error("ran"); return nil }, async.Daemon())
			}
			return nil
		}, async.Limit(1)))
		tookAbout(t, time.Second, start)
	})
}

func TestACancelledScopeSkipsWhatQueuesInTheScopesInsideIt(t *testing.T) {
	for _, inner := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(inner), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				err := async.Scope(asynctest.Context(t), func(outer context.Context) error {
					async.Go(outer, func(ctx context.Context) error {
						return async.Scope(ctx, func(ctx context.Context) error {
							for range 10 {
								async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) })
								async.Race(ctx, func(ctx context.Context) (int, error) { time.Sleep(time.Second); return 1, ctx.Err() }, answer)
							}
							return nil
						}, async.Limit(inner))
					})
					time.Sleep(time.Minute)
					return errLimitWhy
				}, async.Limit(2))
				require.ErrorIs(t, err, errLimitWhy)
				require.Less(t, time.Since(start), time.Hour)
			})
		})
	}
}
