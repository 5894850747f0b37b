package async_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// This file is about what becomes of what a scope has left behind, and of those who
// have opened it.

// A daemon that was left behind, and that the end of its scope has not cancelled, is
// told to go when only daemons are left.
func TestADaemonThatWasLeftIsDismissed(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		var went atomic.Int64
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(context.WithoutCancel(ctx), func(ctx context.Context) error {
				<-ctx.Done()
				if context.Cause(ctx) == async.ErrDismissed {
					went.Store(int64(time.Since(begin)))
				}
				return nil
			}, async.Daemon(), async.Name("daemon"))
			async.Go(ctx, sleeps(time.Hour), async.Name("straggler"))
			return errPlanted
		}, async.DetachAfter(time.Second))
		require.ErrorAs(t, err, new(*async.StragglerError))
		require.Equal(t, time.Second, time.Since(begin))
		time.Sleep(2 * time.Hour)
		require.Equal(t, int64(time.Hour), went.Load(), "when it went")
		require.Empty(t, asynctest.Live(ctx))
	})
}

// A call of OnStall is nobody who is left behind: it is waited for, for as long as a
// hook may take.
func TestAScopeDoesNotLeaveACallOfOnStallBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		require.Equal(t, errPlanted, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, sleeps(2*time.Second))
			return errPlanted
		}, async.DetachAfter(3*time.Second), async.OnStall(time.Second, func(*async.StragglerError) { time.Sleep(4 * time.Second) })))
		require.Equal(t, 5*time.Second, time.Since(begin))
	})
}

// One that has overrun its time is a straggler as any other.
func TestACallOfOnStallThatTakesTooLongIsLeftBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, sleeps(2*time.Second))
			return errPlanted
		}, async.DetachAfter(3*time.Second), async.OnStall(time.Second, func(*async.StragglerError) { time.Sleep(time.Minute) }))
		require.Equal(t, 6*time.Second, time.Since(begin))
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Contains(t, left.Left[0].Task, "stall hook")
		time.Sleep(time.Minute)
	})
}

// What is left behind lends no slot of the task that has gone on without it.
func TestTheEndOfWhatWasLeftLendsNobodysSlot(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var running, most atomic.Int32
		runs := func(d time.Duration) {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(d)
			running.Add(-1)
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(context.Context, error) error { time.Sleep(time.Second); return nil })
					async.Go(context.WithoutCancel(ctx), sleeps(time.Hour)) // which has the slot while Scope waits
					return errPlanted
				}, async.DetachAfter(time.Second))
				require.ErrorAs(t, err, new(*async.StragglerError))
				async.Go(ctx, func(context.Context) error { runs(time.Hour); return nil })
				runs(2 * time.Hour)
				return nil
			})
			return nil
		}, async.Limit(1)))
		require.Equal(t, int32(1), most.Load(), "tasks that ran at once")
	})
}

// The scope returns without its tasks after OnStall was found to be due, and before it
// is called.
func TestOnStallIsNotCalledIfScopeReturnsMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		var looks atomic.Int32
		var returned, late atomic.Bool
		stopped, stop := context.WithCancelCause(ctx)
		tell := func(*async.StragglerError) { late.Store(late.Load() || returned.Load()) }
		err := async.Scope(staleCtx{stopped, func() {
			if time.Since(begin) < time.Second {
				return
			}
			if looks.Add(1) == 2 { // OnStall looks who is left
				stop(errPlanted)
				time.Sleep(time.Millisecond)
			}
		}}, func(ctx context.Context) error {
			async.Go(ctx, sleeps(time.Hour))
			return nil
		}, async.OnStall(time.Second, tell), async.DetachAfter(0))
		returned.Store(true)
		require.ErrorAs(t, err, new(*async.StragglerError))
		require.GreaterOrEqual(t, looks.Load(), int32(2))
		time.Sleep(2 * time.Hour)
		require.False(t, late.Load())
	})
}

// A staleCtx calls asked whenever Err of it is, and says what was so before.
type staleCtx struct {
	context.Context
	asked func()
}

func (c staleCtx) Err() error {
	err := c.Context.Err()
	c.asked()
	return err
}
