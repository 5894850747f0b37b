package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// limitedOn are the executors under which what is started in a limited scope
// may run; nil is none.
var limitedOn = map[string]func() async.Executor{
	"goroutines": func() async.Executor { return pool(func(task func()) error { go task(); return nil }) },
	"inline":     func() async.Executor { return pool(func(task func()) error { task(); return nil }) },
	"one slot":   func() async.Executor { return oneSlot() },
	"never full": func() async.Executor {
		return tryPool{nil, func(task func()) bool { go task(); return true }}
	},
	"refusing": func() async.Executor { return pool(func(func()) error { return errFull }) },
}

func TestAStartWithADoneContextUnderALimitAndOnTakesNoSlot(t *testing.T) {
	for name, executor := range limitedOn {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					done, stop := context.WithCancelCause(ctx)
					stop(errLimitWhy)
					for range 3 {
						f := async.Execute(done, func(context.Context) (int, error) { t.Error("ran"); return 1, nil })
						_, err := f.Wait(ctx)
						require.ErrorIs(t, err, errLimitWhy)
					}
					if name == "refusing" {
						return nil
					}
					f := async.Execute(ctx, answer)
					_, err := f.Await(ctx, time.Minute)
					require.NoError(t, err, "every slot is there")
					return nil
				}, async.Limit(1), async.On(executor())))
			})
		})
	}
}

func TestStartsInACancelledScopeUnderALimitAndOnSettleWithItsCause(t *testing.T) {
	boom := errors.New("boom")
	for name, executor := range limitedOn {
		if name == "refusing" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { return boom })
					<-ctx.Done()
					for range 3 {
						f := async.Execute(ctx, func(context.Context) (int, error) { t.Error("ran"); return 1, nil })
						<-f.Done() // whoever cancels the scope may have found it first, and settles it
						_, err, _ := f.Result()
						require.ErrorIs(t, err, boom)
						async.Go(ctx, func(context.Context) error { t.Error("ran"); return nil })
					}
					return nil
				}, async.Limit(1), async.On(executor()))
				require.ErrorIs(t, err, boom)
			})
		})
	}
}

// TestACancellationAtAnyPointOfTheWayToAnExecutorLosesNoSlot: the executor
// decides when it begins, so each point can be met.
func TestACancellationAtAnyPointOfTheWayToAnExecutorLosesNoSlot(t *testing.T) {
	for _, cancel := range []string{"as it queues", "before it is begun", "after its slot was recalled", "while it waits for its slot again"} {
		t.Run(cancel, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var accepted []func()
				keeps := pool(func(task func()) error {
					mu.Lock()
					defer mu.Unlock()
					accepted = append(accepted, task)
					return nil
				})
				require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					var f *async.Future[int]
					first := async.Start(ctx, func(own context.Context) error {
						f = async.Execute(own, func(context.Context) (int, error) { t.Error("ran"); return 1, nil }, async.On(keeps))
						if cancel == "as it queues" {
							require.True(t, f.Cancel(errLimitWhy))
						}
						if cancel == "before it is begun" {
							time.AfterFunc(time.Millisecond, func() { f.Cancel(errLimitWhy) })
						}
						// Lends its slot to f, which goes to the executor with it.
						require.NoError(t, async.Sleep(own, time.Second))
						if cancel == "after its slot was recalled" {
							require.True(t, f.Cancel(errLimitWhy))
						}
						mu.Lock()
						for _, task := range accepted {
							go task()
						}
						mu.Unlock()
						synctest.Wait()
						if cancel == "while it waits for its slot again" {
							require.True(t, f.Cancel(errLimitWhy))
						}
						synctest.Wait()
						require.Equal(t, async.StateDone, f.State())
						return nil
					})
					_, err := first.Wait(ctx)
					require.NoError(t, err)
					_, err, ok := f.Result()
					require.True(t, ok)
					require.ErrorIs(t, err, errLimitWhy)
					_, err = async.Execute(ctx, answer).Await(ctx, time.Minute)
					require.NoError(t, err, "the slot is there")
					return nil
				}, async.Limit(1)))
			})
		})
	}
}

// TestTasksComeBackThoughThePoolHasNoPlaceForThoseThatFollow: tasks that wait keep
// their places in the pool. No slot may be held by a task that has none yet.
func TestTasksComeBackThoughThePoolHasNoPlaceForThoseThatFollow(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				places := make(chan struct{}, 2*n)
				ex := pool(func(task func()) error {
					places <- struct{}{}
					go func() {
						defer func() { <-places }()
						task()
					}()
					return nil
				})
				require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
					for range 10 * n {
						async.Go(ctx, func(ctx context.Context) error {
							return async.Sleep(ctx, time.Second)
						})
					}
					return nil
				}, async.Limit(n), async.On(ex)))
			})
		})
	}
}

func TestATaskThatItsExecutorRefusesGivesItsSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			for _, refuse := range []pool{
				func(func()) error { return errFull },
				func(func()) error { panic(errFull) },
			} {
				_, err := async.Execute(ctx, answer, async.On(refuse)).Await(ctx, time.Minute)
				var rejected *async.RejectedError
				require.ErrorAs(t, err, &rejected)
				_, err = async.Execute(ctx, answer).Await(ctx, time.Minute)
				require.NoError(t, err)
			}
			return nil
		}, async.Limit(1)))
	})
}
