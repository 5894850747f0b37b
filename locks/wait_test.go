package locks_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

// held takes a lock as another process, until free is called.
func held(t *testing.T, w *world, key string, options ...locks.LockOption) (free func()) {
	t.Helper()
	h, err := w.other.Acquire(t.Context(), key, options...)
	require.NoError(t, err)
	return func() { require.NoError(t, h.Release(t.Context())) }
}

func TestThoseWhoWaitAreGrantedTheLockInOrder(t *testing.T) {
	for _, hints := range []bool{true, false} {
		in(t, func(t *testing.T, w *world) {
			w.store.Mute(!hints)
			free := held(t, w, "k")
			var order []int
			require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
				for i := range 100 {
					async.Go(ctx, func(ctx context.Context) error {
						return w.m.With(ctx, "k", func(context.Context) error {
							order = append(order, i)
							return nil
						})
					})
					synctest.Wait()
				}
				free()
				return nil
			}))
			assert.True(t, slices.IsSorted(order), "%v", order)
			assert.Len(t, order, 100)
		})
	}
}

func TestTwoProcessesShareTheQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		var order []int
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for i := range 20 {
				m := []*locks.Manager{w.m, w.other}[i%2]
				async.Go(ctx, func(ctx context.Context) error {
					return m.With(ctx, "k", func(context.Context) error {
						order = append(order, i)
						return nil
					})
				})
				synctest.Wait()
			}
			free()
			return nil
		}))
		assert.True(t, slices.IsSorted(order), "%v", order)
	})
}

func TestAHintLeadsToAnAttemptAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			time.Sleep(leaseTime)
			begin := time.Now()
			free()
			synctest.Wait()
			assert.Zero(t, time.Since(begin))
			assert.Len(t, w.events.of(locks.EventGranted), 1)
			return nil
		}))
	})
}

func TestALostHintCostsOnePoll(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Mute(true)
		free := held(t, w, "k")
		var granted atomic.Pointer[time.Time]
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				return w.m.With(ctx, "k", func(context.Context) error { granted.Store(new(time.Now())); return nil })
			})
			time.Sleep(leaseTime)
			begin := time.Now()
			free()
			time.Sleep(5 * time.Second)
			assert.LessOrEqual(t, granted.Load().Sub(begin), 1200*time.Millisecond)
			return nil
		}))
	})
}

func TestTheEndOfALeaseIsWaitedForToThePoint(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Mute(true)
		begin := time.Now()
		_, err := w.other.Acquire(t.Context(), "k", locks.NoRenew()) // its process dies
		require.NoError(t, err)
		time.Sleep(333 * time.Millisecond)
		require.NoError(t, w.m.With(t.Context(), "k", func(context.Context) error {
			assert.InDelta(t, leaseTime+5*time.Millisecond, time.Since(begin), float64(time.Microsecond))
			return nil
		}))
	})
	in(t, func(t *testing.T, w *world) { // only by those who may be granted it
		begin := time.Now()
		_, err := w.other.Acquire(t.Context(), "k", locks.LeaseFor(2500*time.Millisecond), locks.NoRenew())
		require.NoError(t, err)
		third := w.manager(lockstest.NewFaulty(w.store.Store))
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				return third.With(ctx, "k", func(ctx context.Context) error { return async.Sleep(ctx, time.Minute) })
			})
			synctest.Wait()
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			synctest.Wait()
			w.store.Forget()
			time.Sleep(2600 * time.Millisecond)
			for _, c := range w.store.Calls(lockstest.Acquire) {
				assert.Greater(t, c.At.Sub(begin.Add(2505*time.Millisecond)).Abs(), time.Microsecond)
			}
			assert.LessOrEqual(t, len(w.store.Calls(lockstest.Acquire)), 3)
			return nil
		}))
	})
}

func TestAProcessAsksOnceASecondForAllWhoWaitForAKey(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for range 100 {
				async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			}
			synctest.Wait()
			w.store.Forget()
			time.Sleep(time.Minute)
			calls := w.store.Calls(lockstest.Acquire)
			assert.LessOrEqual(t, len(calls), 60)
			assert.GreaterOrEqual(t, len(calls), 45)
			for _, c := range calls {
				assert.Len(t, c.Requests, 100)
			}
			r, err := w.other.Get(ctx, "k")
			require.NoError(t, err)
			assert.Equal(t, 100, r.Waiters, "each has a ticket")
			free()
			return nil
		}))
	})
}

func TestARequestIsRegisteredBeforeItIsTriedAndTriedBeforeItSleeps(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		// The lock is released just after the first question, before anybody listens.
		free := held(t, w, "k")
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && c.Number == 1 {
				f.After = time.Millisecond
				time.AfterFunc(time.Microsecond, free)
			}
			return f
		})
		begin := time.Now()
		require.NoError(t, w.m.With(t.Context(), "k", nothing))
		assert.Equal(t, time.Millisecond, time.Since(begin), "no wake-up is lost")
	})
}

func TestACancelledWaiterWithdrawsItsRequest(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		begin := time.Now()
		err := w.m.With(ctx, "k", nothing)
		assert.Equal(t, time.Minute, time.Since(begin))
		var refused *locks.NotGrantedError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, locks.RefusedCancelled, refused.Reason)
		assert.Equal(t, "other", refused.Holder)
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, locks.ErrNotGranted)
		require.NotErrorIs(t, err, locks.ErrUnknownOutcome)
		r, err := w.other.Get(t.Context(), "k")
		require.NoError(t, err)
		assert.Zero(t, r.Waiters)
		free()
		synctest.Wait()
		w.mustFree("k")
	})
}

func TestAWaiterWhoseTimeIsOverSaysSo(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		begin := time.Now()
		_, err := w.m.Acquire(t.Context(), "k", locks.Wait(7*time.Second))
		assert.Equal(t, 7*time.Second, time.Since(begin))
		var refused *locks.NotGrantedError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, locks.RefusedTimedOut, refused.Reason)
		assert.NoError(t, refused.Err)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "that is for the end of ctx")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = w.m.Acquire(ctx, "k")
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, locks.RefusedTimedOut, refused.Reason)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		_, err = w.m.Acquire(t.Context(), "k", locks.NoWait())
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, locks.RefusedNoWait, refused.Reason)
		assert.Equal(t, "other", refused.Holder)
		free()
	})
}

func TestTheEndOfCtxWhileWaitingIsAnEchoForAScope(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		why := errors.New("why")
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			synctest.Wait()
			return why
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		assert.Equal(t, []error{why}, list.Errors, "nothing else has gone wrong")
		assert.ErrorAs(t, list.Stopped[0], new(*locks.NotGrantedError))
		free()
	})
}

func TestTheHeadOfTheQueueThatGivesUpWakesTheNext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		readers := held(t, w, "k", locks.Read())
		begin := time.Now()
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { // a writer, first in the queue, gives up after 2.5 s
				err := w.m.WithWrite(ctx, "k", nothing, locks.Wait(2500*time.Millisecond))
				assert.ErrorIs(t, err, locks.ErrNotGranted)
				return nil
			})
			synctest.Wait()
			async.Go(ctx, func(ctx context.Context) error { // a reader of another process waits behind it
				return w.manager(lockstest.NewFaulty(w.store.Store)).WithRead(ctx, "k", nothing)
			})
			return nil
		}))
		assert.Equal(t, 2500*time.Millisecond, time.Since(begin))
		readers()
	})
}

func TestAWaiterThatDiesHoldsNobodyUpForLong(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		dead := locks.Request{ID: "dead", Version: "v", Owner: "dead", Kind: locks.Mutex, Lease: leaseTime, Wait: true}
		_, err := w.store.Store.Acquire(t.Context(), locks.Name{Tenant: "default", Key: "k"}, []locks.Request{dead})
		require.NoError(t, err)
		begin := time.Now()
		free()
		require.NoError(t, w.m.With(t.Context(), "k", nothing))
		assert.LessOrEqual(t, time.Since(begin), locks.WaiterLife+1200*time.Millisecond)
	})
}

func TestAWaitingProcessSurvivesAShortOutage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		var down atomic.Bool
		w.store.Inject(func(lockstest.Call) (f lockstest.Fault) {
			if down.Load() {
				f.Fail = lockstest.ErrFault
			}
			return f
		})
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			time.Sleep(5 * time.Second)
			down.Store(true)
			time.Sleep(8 * time.Second)
			down.Store(false)
			time.Sleep(5 * time.Second)
			free()
			return nil
		}))
	})
}

func TestAnOutageIsNotContention(t *testing.T) {
	for name, fault := range map[string]lockstest.Fault{"fails": {Fail: lockstest.ErrFault}, "silent": {Silent: true}, "answers lost": {Lose: lockstest.ErrFault}} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.store.Inject(func(lockstest.Call) lockstest.Fault { return fault })
				for _, option := range []locks.LockOption{locks.NoWait(), locks.Wait(2 * time.Second), locks.Wait(time.Hour)} {
					begin := time.Now()
					_, err := w.m.Acquire(t.Context(), "k", option)
					require.ErrorIs(t, err, locks.ErrUnavailable)
					require.ErrorIs(t, err, locks.ErrUnknownOutcome, "it could not be withdrawn")
					require.NotErrorIs(t, err, locks.ErrNotGranted)
					assert.LessOrEqual(t, time.Since(begin), 20*time.Second)
				}
			})
		})
	}
}

func TestALockThatCouldNotBeWithdrawnEndsWithItsLease(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Inject(func(lockstest.Call) lockstest.Fault { return lockstest.Fault{Lose: lockstest.ErrFault} })
		_, err := w.m.Acquire(t.Context(), "k", locks.NoWait())
		require.ErrorIs(t, err, locks.ErrUnknownOutcome)
		time.Sleep(leaseTime)
		w.mustFree("k")
	})
}

func TestAGrantWhoseAnswerIsLostIsFoundByItsID(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && c.Number == 1 {
				f.Lose = lockstest.ErrFault
			}
			return f
		})
		require.NoError(t, w.m.With(t.Context(), "k", func(context.Context) error {
			calls := w.store.Calls(lockstest.Acquire)
			assert.Equal(t, calls[0].Requests[0].ID, calls[1].Requests[0].ID)
			return nil
		}))
		w.mustFree("k")
	})
}

func TestAGrantThatIsAnsweredAfterItsOwnEndIsGivenBackAndAskedAnew(t *testing.T) {
	for _, options := range [][]locks.LockOption{nil, {locks.NoWait()}} {
		in(t, func(t *testing.T, w *world) {
			const lease = time.Second
			deaf := make(chan struct{})
			w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
				if c.Step == lockstest.Acquire && c.Number == 1 {
					// The answer stays on its way although nobody waits for it in the client of the database.
					f.Late = deaf
				}
				return f
			})
			time.AfterFunc(trusted(lease), func() { close(deaf) })
			require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
				calls := w.store.Calls(lockstest.Acquire)
				assert.Greater(t, len(calls), 1)
				last := calls[len(calls)-1]
				assert.NotEqual(t, calls[0].Requests[0].ID, last.Requests[0].ID)
				assert.NoError(t, locks.From(ctx).Err())
				return nil
			}, append(options, locks.LeaseFor(lease))...))
			synctest.Wait()
			w.mustFree("k")
		})
	}
}

func TestAGrantForAWaiterThatHasGoneIsGivenBackAndTheNextIsHinted(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		var slow atomic.Bool
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && slow.Load() {
				f.After = 500 * time.Millisecond
			}
			return f
		})
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, async.Scope(t.Context(), func(scope context.Context) error {
			async.Go(scope, func(context.Context) error {
				err := w.m.With(ctx, "k", nothing)
				assert.ErrorIs(t, err, locks.ErrNotGranted)
				assert.NotErrorIs(t, err, locks.ErrUnknownOutcome)
				return nil
			})
			synctest.Wait()
			var granted atomic.Pointer[time.Time]
			async.Go(scope, func(ctx context.Context) error {
				return w.other.With(ctx, "k", func(context.Context) error { granted.Store(new(time.Now())); return nil })
			})
			synctest.Wait()
			slow.Store(true)
			free()
			synctest.Wait()
			cancel() // the grant is on its way
			begin := time.Now()
			time.Sleep(time.Second)
			assert.Equal(t, 500*time.Millisecond, granted.Load().Sub(begin))
			return nil
		}))
	})
}

func TestALeaverDoesNotWaitForeverForAQuestionOnItsWay(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		late := make(chan struct{})
		var stuck atomic.Bool
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && stuck.Load() {
				f.Late = late
			}
			return f
		})
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, async.Scope(t.Context(), func(scope context.Context) error {
			async.Go(scope, func(context.Context) error {
				err := w.m.With(ctx, "k", nothing)
				assert.ErrorIs(t, err, locks.ErrNotGranted)
				assert.ErrorIs(t, err, locks.ErrUnknownOutcome)
				return nil
			})
			time.Sleep(100 * time.Millisecond)
			stuck.Store(true)
			free()
			synctest.Wait()
			begin := time.Now()
			cancel()
			time.Sleep(2 * time.Second)
			assert.Empty(t, w.events.of(locks.EventGranted))
			assert.Len(t, w.events.of(locks.EventNotGranted), 1)
			assert.LessOrEqual(t, time.Since(begin), 2*time.Second)
			close(late)
			synctest.Wait()
			w.mustFree("k") // it was granted, to nobody, and given back
			return nil
		}))
	})
}

func TestACtxThatIsDoneAsksForNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, w.m.With(ctx, "k", nothing), context.Canceled)
		assert.Empty(t, w.store.Calls(lockstest.Acquire))
	})
}

func TestAClosedManagerGrantsNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		mine, err := w.m.Acquire(t.Context(), "mine")
		require.NoError(t, err)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				assert.ErrorIs(t, w.m.With(ctx, "k", nothing), locks.ErrClosed)
				return nil
			})
			synctest.Wait()
			require.NoError(t, w.m.Close())
			require.NoError(t, w.m.Close())
			return nil
		}))
		require.ErrorIs(t, w.m.With(t.Context(), "k2", nothing), locks.ErrClosed)
		_, err = w.m.TryWith(t.Context(), "k2", nothing)
		require.ErrorIs(t, err, locks.ErrClosed)
		time.Sleep(time.Hour)
		require.NoError(t, mine.Err(), "what is held stays held")
		require.NoError(t, mine.Release(t.Context()))
		free()
		r, err := w.other.Get(t.Context(), "k")
		require.NoError(t, err)
		assert.Zero(t, r.Waiters)
	})
}

func TestAThousandWaitersOfAKeyAreServedInOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		free := held(t, w, "k")
		var order []int
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for i := range 1000 {
				async.Go(ctx, func(ctx context.Context) error {
					return w.m.With(ctx, "k", func(ctx context.Context) error {
						order = append(order, i)
						return async.Sleep(ctx, 10*time.Millisecond)
					})
				})
				synctest.Wait()
			}
			free()
			return nil
		}))
		assert.True(t, slices.IsSorted(order))
		assert.Len(t, order, 1000)
	})
}

func TestNobodyIsForgotten(t *testing.T) {
	// Many come and go at random, of several processes, some of them without hints: at the
	// end the lock is free, and everybody who waited long enough had it.
	in(t, func(t *testing.T, w *world) {
		var ms []*locks.Manager
		for i := range 4 {
			s := lockstest.NewFaulty(w.store.Store)
			s.Mute(i%2 == 1)
			ms = append(ms, w.manager(s))
		}
		var mu sync.Mutex
		inside, done := 0, 0
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for i := range 200 {
				async.Go(ctx, func(ctx context.Context) error {
					require.NoError(t, async.Sleep(ctx, time.Duration(i*37%100)*time.Millisecond))
					var options []locks.LockOption
					if i%5 == 0 {
						options = append(options, locks.Wait(time.Duration(i)*time.Millisecond))
					}
					err := ms[i%4].WithPermit(ctx, "k", 3, func(ctx context.Context) error {
						mu.Lock()
						inside++
						assert.LessOrEqual(t, inside, 3)
						mu.Unlock()
						err := async.Sleep(ctx, 5*time.Millisecond)
						mu.Lock()
						inside--
						done++
						mu.Unlock()
						return err
					}, options...)
					if i%5 != 0 {
						return err
					}
					return nil
				})
			}
			return nil
		}))
		assert.GreaterOrEqual(t, done, 160)
		w.mustFree("k", locks.Permit(3))
	})
}

func TestAHintThatComesBeforeAWaiterJoinsIsNotLost(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		// Two callers ask at the same time, before there is a gate. The answer to the first
		// is late: the lock is released, and hinted, before that caller waits.
		free := held(t, w, "k")
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Acquire && c.Number == 1 {
				f.After = 100 * time.Millisecond
			}
			return f
		})
		begin := time.Now()
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			synctest.Wait()
			async.Go(ctx, func(ctx context.Context) error { return w.m.With(ctx, "k", nothing) })
			time.Sleep(50 * time.Millisecond)
			free()
			return nil
		}))
		assert.Equal(t, 100*time.Millisecond, time.Since(begin))
	})
}

func TestATaskThatWaitsForALockLendsItsSlotOfALimit(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			for range 3 {
				async.Go(ctx, func(ctx context.Context) error {
					return w.m.With(ctx, "k", func(ctx context.Context) error {
						if err := async.Sleep(ctx, time.Second); err != nil { // another task takes the slot
							return err
						}
						async.Go(ctx, func(context.Context) error { return nil }) // and this one needs it
						return nil
					})
				})
			}
			return nil
		}, async.Limit(1)))
	})
}

func TestALockThatIsGrantedWhenItsCallerHasGoneIsGivenBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		fail(w, lockstest.Acquire, lockstest.Fault{After: 100 * time.Millisecond, Do: cancel})
		err := w.m.With(ctx, "k", func(context.Context) error { panic("called") })
		require.ErrorIs(t, err, locks.ErrNotGranted)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, locks.ErrUnknownOutcome)
		w.mustFree("k")
	})
}

func TestACallThatWaitsForAllTheTimeThereIsAsksOnceForALockThatIsFree(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.m.With(t.Context(), "k", nothing, locks.Wait(1<<63-1)))
		require.Empty(t, w.events.of(locks.EventWaiting))
	})
}
