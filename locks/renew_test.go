package locks_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

// trusted is D of the contract, counted from when the lease was asked for.
func trusted(lease time.Duration) time.Duration {
	return lease*99/100 - min(max(lease/10, 100*time.Millisecond), 2*time.Second)
}

var leases = []time.Duration{500 * time.Millisecond, time.Second, leaseTime, 10 * time.Minute, 24 * time.Hour}

// fail has every call of a step meet a fault.
func fail(w *world, step lockstest.Step, f lockstest.Fault) {
	w.store.Inject(func(c lockstest.Call) lockstest.Fault {
		if c.Step == step {
			return f
		}
		return lockstest.Fault{}
	})
}

func TestTheDeadlineIsCountedFromBeforeTheRequest(t *testing.T) {
	for _, lease := range leases {
		in(t, func(t *testing.T, w *world) {
			slow := min(lease/10, time.Second)
			fail(w, lockstest.Acquire, lockstest.Fault{After: slow})
			begin := time.Now()
			h, err := w.m.Acquire(t.Context(), "k", locks.LeaseFor(lease))
			require.NoError(t, err)
			assert.Equal(t, begin.Add(trusted(lease)), h.Deadline())
			assert.Equal(t, trusted(lease)-slow, h.Remaining())
			require.NoError(t, h.Release(t.Context()))
		})
	}
}

func TestTheFirstRenewalComesAtAThirdOfTheLease(t *testing.T) {
	for _, lease := range leases {
		in(t, func(t *testing.T, w *world) {
			begin := time.Now()
			h, err := w.m.Acquire(t.Context(), "k", locks.LeaseFor(lease))
			require.NoError(t, err)
			time.Sleep(4 * lease)
			require.NoError(t, h.Err())
			require.NoError(t, h.Release(t.Context()))
			last := begin
			for _, c := range w.store.Calls(lockstest.Renew) {
				assert.InDelta(t, float64(lease)/3, float64(c.At.Sub(last)), float64(lease)/30+float64(time.Millisecond))
				last = c.At
			}
			assert.InDelta(t, 12, len(w.store.Calls(lockstest.Renew)), 2)
		})
	}
}

func TestAStoreThatDoesNotAnswerLosesTheLockBeforeTheStoreGivesItAway(t *testing.T) {
	for name, fault := range map[string]lockstest.Fault{
		"silent":              {Silent: true},
		"fails":               {Fail: lockstest.ErrFault},
		"deaf":                {Deaf: make(chan struct{})},
		"every row is locked": {Skip: true},
	} {
		for _, lease := range leases {
			t.Run(fmt.Sprint(name, " ", lease), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					deaf := make(chan struct{})
					if fault.Deaf != nil {
						fault.Deaf = deaf
					}
					fail(w, lockstest.Renew, fault)
					begin := time.Now()
					err := w.m.With(t.Context(), "k", func(ctx context.Context) error {
						<-ctx.Done()
						assert.Equal(t, trusted(lease), time.Since(begin), "without waiting for any call")
						assert.False(t, w.free("k"), "the store has not given it away yet")
						return nil
					}, locks.LeaseFor(lease))
					assert.Equal(t, trusted(lease), time.Since(begin), "nothing is waited for after that")
					var lost *locks.LostError
					require.ErrorAs(t, err, &lost)
					assert.Equal(t, locks.LostUnreachable, lost.Reason)
					require.ErrorIs(t, err, locks.ErrUnavailable)
					time.Sleep(lease - trusted(lease))
					w.mustFree("k")
					close(deaf)

					calls := w.store.Calls(lockstest.Renew)
					assert.InDelta(t, float64(lease)/3, float64(calls[0].At.Sub(begin)), float64(lease)/30+1)
					for i, c := range calls[1:] {
						pause := lease / 12
						if fault.Silent || fault.Deaf != nil {
							pause = lease / 6 // as long as a call may take
						} else if fault.Skip && i%2 == 0 {
							pause = 0 // at once, alone
						}
						if begin.Add(trusted(lease)).Sub(c.At) > 0 {
							assert.InDelta(t, float64(pause), float64(c.At.Sub(calls[i].At)), float64(lease)/60+float64(time.Millisecond))
						}
					}
				})
			})
		}
	}
}

func TestAStoreThatAnswersAgainInTimeLosesNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		begin := time.Now()
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			f.Silent = c.Step == lockstest.Renew && time.Since(begin) < leaseTime*3/4
			return f
		})
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			return async.Sleep(ctx, 3*leaseTime)
		}))
		assert.NotEmpty(t, w.events.of(locks.EventRenewFailed))
	})
}

func TestARenewalWhoseAnswerIsLostCountsFromTheNext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Renew && c.Number%2 == 1 {
				f.Lose = lockstest.ErrFault
			}
			return f
		})
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			return async.Sleep(ctx, time.Hour)
		}))
	})
}

func TestAnAnswerThatComesAfterTheDeadlineBringsNothingBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		deaf := make(chan struct{})
		fail(w, lockstest.Renew, lockstest.Fault{Do: func() { <-deaf }}) // it is done, but late
		err := w.m.With(t.Context(), "k", func(ctx context.Context) error {
			<-ctx.Done()
			h := locks.From(ctx)
			require.Error(t, h.Err())
			close(deaf)
			synctest.Wait()
			require.Error(t, h.Err())
			assert.Zero(t, h.Remaining())
			return nil
		})
		require.ErrorIs(t, err, locks.ErrUnavailable)
	})
}

func TestNotYoursIsALossAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		begin := time.Now()
		err := w.m.With(t.Context(), "k", func(ctx context.Context) error {
			require.NoError(t, steal(w, ctx))
			<-ctx.Done()
			assert.Less(t, time.Since(begin), leaseTime*11/30+time.Millisecond, "at the first renewal")
			return nil
		})
		require.ErrorAs(t, err, new(*locks.LostError))
		assert.Empty(t, w.store.Calls(lockstest.Release), "there is nothing to give back")
		synctest.Wait() // a loss is told by the task that has found it
		lost := w.events.of(locks.EventLost)
		require.Len(t, lost, 1)
		assert.Equal(t, "k", lost[0].Key)
	})
}

func TestARevokedLockIsGivenBackWhenTheBodyHasEnded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		err := w.m.With(t.Context(), "k", func(ctx context.Context) error {
			n, err := w.other.Revoke(t.Context(), "k")
			require.NoError(t, err)
			assert.Equal(t, 1, n)
			<-ctx.Done()
			assert.False(t, w.free("k"), "nobody is granted it while the body runs")
			return nil
		})
		var lost *locks.LostError
		require.ErrorAs(t, err, &lost)
		assert.Equal(t, locks.LostRevoked, lost.Reason)
		w.mustFree("k")
	})
}

func TestAStoppedProcessLearnsFirstThatItsLeaseIsOver(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		h, err := w.m.Acquire(t.Context(), "k")
		require.NoError(t, err)
		w.m.Suspend(leaseTime) // the machine slept; timers have not counted that
		var lost *locks.LostError
		require.ErrorAs(t, h.Err(), &lost)
		assert.Equal(t, locks.LostExpired, lost.Reason)
		select {
		case <-h.Done():
		default:
			assert.Fail(t, "Done is not closed")
		}
		require.ErrorIs(t, h.Release(t.Context()), error(lost))
		assert.Empty(t, w.store.Calls(lockstest.Release))
	})
}

func TestABodyOfAStoppedProcessLearnsFirstThatItsLeaseIsOver(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context) bool{
		"Err":   func(ctx context.Context) bool { return ctx.Err() != nil },
		"Cause": func(ctx context.Context) bool { return context.Cause(ctx) != nil },
		"Done": func(ctx context.Context) bool {
			select {
			case <-ctx.Done():
				return true
			default:
				return false
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := func(m *locks.Manager) func(ctx context.Context) error {
				return func(ctx context.Context) error {
					assert.False(t, ask(ctx))
					m.Suspend(leaseTime)
					assert.True(t, ask(ctx), "it goes on")
					assert.ErrorAs(t, context.Cause(ctx), new(*locks.LostError))
					return nil
				}
			}
			in(t, func(t *testing.T, w *world) {
				require.ErrorAs(t, w.m.With(t.Context(), "k", body(w.m)), new(*locks.LostError))
				require.ErrorAs(t, w.m.WithAll(t.Context(), []string{"j", "l"}, body(w.m)), new(*locks.LostError))
				h, err := w.m.Acquire(t.Context(), "m")
				require.NoError(t, err)
				require.ErrorAs(t, h.Run(t.Context(), body(w.m)), new(*locks.LostError))
			})
		})
	}
}

func TestManyLocksAreRenewedTogether(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const n = 10_000
		holds := make([]*locks.Hold, n)
		for i := range holds {
			h, err := w.m.Acquire(t.Context(), fmt.Sprintf("k%05d", i), locks.LeaseFor(time.Minute))
			require.NoError(t, err)
			holds[i] = h
			if i%100 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		time.Sleep(3 * time.Minute)
		for _, h := range holds {
			require.NoError(t, h.Err())
		}
		calls := w.store.Calls(lockstest.Renew)
		renewed := 0
		for _, c := range calls {
			renewed += len(c.Renewals)
		}
		assert.LessOrEqual(t, len(calls), 12)
		assert.InDelta(t, 9*n, renewed, 1.5*n)
		for _, h := range holds {
			require.NoError(t, h.Release(t.Context()))
		}
		assert.Empty(t, w.events.of(locks.EventLost))
	})
}

func TestASlowCallForLongLeasesHoldsUpNoShortOnes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			f.Silent = c.Step == lockstest.Renew && c.Renewals[0].Lease > time.Minute
			return f
		})
		long, err := w.m.Acquire(t.Context(), "long", locks.LeaseFor(time.Hour))
		require.NoError(t, err)
		short, err := w.m.Acquire(t.Context(), "short", locks.LeaseFor(time.Second))
		require.NoError(t, err)
		time.Sleep(45 * time.Minute)
		require.NoError(t, short.Err())
		require.NoError(t, long.Err())
		require.NoError(t, short.Release(t.Context()))
		require.NoError(t, long.Release(t.Context()))
	})
}

func TestAnUnrenewableLockOfManyLosesNoOther(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		// One row is locked by another transaction for ever: a call with it alone hangs,
		// one with others skips it, or hangs as well in a store that cannot skip rows.
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			bad := slices.IndexFunc(c.Renewals, func(r locks.Renewal) bool { return r.Key == "bad" })
			if bad >= 0 && len(c.Renewals) == 1 {
				f.Silent = true
			} else if bad >= 0 {
				f.SkipKey = "bad"
			}
			return f
		})
		var good []*locks.Hold
		for i := range 100 {
			h, err := w.m.Acquire(t.Context(), fmt.Sprint("good", i))
			require.NoError(t, err)
			good = append(good, h)
		}
		bad, err := w.m.Acquire(t.Context(), "bad")
		require.NoError(t, err)
		time.Sleep(10 * leaseTime)
		require.ErrorAs(t, bad.Err(), new(*locks.LostError))
		for _, h := range good {
			require.NoError(t, h.Err())
			require.NoError(t, h.Release(t.Context()))
		}
	})
}

func TestALockThatHasEveryCallFailTakesFewOthersAlong(t *testing.T) {
	for _, fault := range []lockstest.Fault{{Silent: true}, {Fail: lockstest.ErrFault}} {
		in(t, func(t *testing.T, w *world) {
			w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
				if slices.ContainsFunc(c.Renewals, func(r locks.Renewal) bool { return r.Key == "bad" }) {
					return fault
				}
				return f
			})
			var good []*locks.Hold
			for i := range 1000 {
				h, err := w.m.Acquire(t.Context(), fmt.Sprint("good", i))
				require.NoError(t, err)
				good = append(good, h)
			}
			bad, err := w.m.Acquire(t.Context(), "bad")
			require.NoError(t, err)
			time.Sleep(leaseTime)
			require.ErrorAs(t, bad.Err(), new(*locks.LostError))
			lost := 0
			for _, h := range good {
				if h.Err() != nil {
					lost++
				}
				_ = h.Release(t.Context())
			}
			assert.LessOrEqual(t, lost, 3, "of 1,000: each has a chance of one in 30,000")
		})
	}
}

func TestALockThatIsSkippedIsAskedForAlone(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		// The rows of two locks are locked by others whenever they are asked for together.
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			f.Skip = len(c.Renewals) > 1
			return f
		})
		require.NoError(t, w.m.WithAll(t.Context(), []string{"a", "b", "c"}, func(ctx context.Context) error {
			return async.Sleep(ctx, 10*leaseTime)
		}))
		calls := w.store.Calls(lockstest.Renew)
		assert.Len(t, calls[0].Renewals, 3)
		for _, c := range calls[1:4] {
			assert.Equal(t, calls[0].At, c.At)
			assert.Len(t, c.Renewals, 1)
		}
	})
}

func TestAnAnswerThatComesAfterASuspendIsALossAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Renew { // the machine sleeps while the answer is on its way
				f.After = time.Millisecond
				f.Do = func() { w.m.Suspend(leaseTime) }
			}
			return f
		})
		err := w.m.With(t.Context(), "k", func(ctx context.Context) error {
			<-ctx.Done()
			assert.Equal(t, time.Millisecond, time.Since(w.store.Calls(lockstest.Renew)[0].At))
			return nil
		})
		require.ErrorAs(t, err, new(*locks.LostError))
	})
}

func TestNoTimerAndNoTaskIsLeftWhenNothingIsHeld(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for i := range 10 {
			require.NoError(t, w.m.With(t.Context(), fmt.Sprint(i), nothing))
		}
		w.store.Forget()
		time.Sleep(24 * time.Hour)
		assert.Empty(t, w.store.Calls(lockstest.Renew))
	})
}

func TestAPanicOfTheStoreInARenewalIsAFailedRenewal(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			if c.Step == lockstest.Renew && c.Number == 1 {
				f.Do = func() { panic("a fault of the store") }
			}
			return f
		})
		require.NoError(t, w.m.With(t.Context(), "k", func(ctx context.Context) error {
			return async.Sleep(ctx, 3*leaseTime)
		}))
		assert.Len(t, w.events.of(locks.EventRenewFailed), 1)
	})
}
