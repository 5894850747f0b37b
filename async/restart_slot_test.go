package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// TestBetweenRunsATaskHoldsNoSlot: another task has it then, and the next run waits
// for that.
func TestBetweenRunsATaskHoldsNoSlot(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		var busy atomic.Int32
		var log []string
		work := func(name string, d time.Duration) {
			require.EqualValues(t, 1, busy.Add(1))
			log = append(log, fmt.Sprintf("%s at %v", name, time.Since(begin)))
			time.Sleep(d)
			busy.Add(-1)
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			runs := 0
			async.Go(ctx, func(context.Context) error {
				work("worker", 0)
				if runs++; runs < 3 {
					return errRun
				}
				return nil
			}, everySecond)
			synctest.Wait()
			async.Go(ctx, func(context.Context) error { work("other", 5*time.Second); return nil })
			return nil
		}, async.Limit(1)))
		require.Equal(t, []string{"worker at 0s", "other at 0s", "worker at 5s", "worker at 6s"}, log)
	})
}

// TestARunIsAsDeepAsItsTask: it starts after what queues deeper, and in its turn
// among its like.
func TestARunIsAsDeepAsItsTask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var order []string
		note := func(name string) func(context.Context) error {
			return func(context.Context) error { order = append(order, name); return nil }
		}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, note("deeper"))
				time.Sleep(time.Second)
				return nil
			})
			synctest.Wait()
			async.Go(ctx, note("before"))
			async.Go(ctx, note("restarted"), everySecond)
			async.Go(ctx, note("behind"))
			async.Go(ctx, note("urgent"), everySecond, async.Priority(1))
			return nil
		}, async.Limit(1)))
		require.Equal(t, []string{"deeper", "urgent", "before", "restarted", "behind"}, order)
	})
}

func TestATaskThatQueuesForItsNextRunIsCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			f, runs := failing(100, nil)
			w := async.Start(ctx, f, everySecond)
			synctest.Wait()
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
			time.Sleep(2 * time.Second)
			require.Equal(t, async.StateRunning, w.State())
			require.True(t, w.Cancel(errPlanted))
			begin := time.Now()
			_, err := w.Join(ctx)
			tookAbout(t, 0, begin)
			require.ErrorIs(t, err, errPlanted)
			require.EqualValues(t, 1, runs.Load())
			return nil
		}, async.Limit(1))
	})
}

// refusing is an executor that refuses what odd says.
type refusing struct{ refuse func(n int32) bool }

var errRefused = errors.New("full")

func (r *refusing) executor() (async.Executor, *atomic.Int32) {
	asked := new(atomic.Int32)
	return executorFunc(func(task func()) error {
		if r.refuse(asked.Add(1)) {
			return errRefused
		}
		go task()
		return nil
	}), asked
}

type executorFunc func(func()) error

func (f executorFunc) Execute(task func()) error { return f(task) }

// TestATaskKeepsItsPlaceOnTheExecutor between runs, and after a Goexit it is handed to
// the executor anew.
func TestATaskKeepsItsPlaceOnTheExecutor(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ex, asked := (&refusing{func(int32) bool { return false }}).executor()
				f, runs := failing(3, end)
				_, err := async.Start(ctx, f, everySecond, async.On(ex)).Join(ctx)
				require.NoError(t, err)
				require.EqualValues(t, 4, runs.Load())
				want := int32(1)
				if how == "goexit" {
					want = 4
				}
				require.Equal(t, want, asked.Load())
			})
		})
	}
	t.Run("under a limit", func(t *testing.T) {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
				for range 3 {
					f, _ := failing(3, runtime.Goexit)
					async.Go(ctx, f, everySecond, async.On(executorFunc(func(task func()) error { go task(); return nil })))
				}
				return nil
			}, async.Limit(1)))
		})
	})
}

// TestAnExecutorThatRefusesATaskEndsIt, at first and after a Goexit.
func TestAnExecutorThatRefusesATaskEndsIt(t *testing.T) {
	for name, from := range map[string]int32{"at first": 1, "after a Goexit": 3} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ex, asked := (&refusing{func(n int32) bool { return n >= from }}).executor()
				f, runs := failing(100, runtime.Goexit)
				_, err := async.Start(ctx, f, everySecond, async.On(ex)).Join(ctx)
				require.ErrorAs(t, err, new(*async.RejectedError))
				require.ErrorIs(t, err, errRefused)
				require.Equal(t, from, asked.Load())
				require.Equal(t, from-1, runs.Load())
			})
		})
	}
}

// TestATaskThatAnExecutorHasDroppedIsCancelled: the first time and after a Goexit.
func TestATaskThatAnExecutorHasDroppedIsCancelled(t *testing.T) {
	for name, kept := range map[string]int32{"first": 0, "later": 2} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var n atomic.Int32
				f, runs := failing(100, runtime.Goexit)
				w := async.Start(ctx, f, everySecond, async.On(executorFunc(func(task func()) error {
					if n.Add(1) <= kept {
						go task()
					}
					return nil
				})))
				time.Sleep(time.Minute)
				w.Cancel(errPlanted)
				begin := time.Now()
				_, err := w.Join(ctx)
				tookAbout(t, 0, begin)
				require.ErrorIs(t, err, errPlanted)
				require.Equal(t, kept, runs.Load())
			})
		})
	}
}
