package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/lease"
)

var lengths = []time.Duration{500 * ms, time.Second, length, time.Minute, time.Hour}

func TestTheBeliefIsCountedFromBeforeTheRequest(t *testing.T) {
	for _, d := range lengths {
		in(t, func(ctx context.Context, w *world) {
			sent := w.k.Now()
			time.Sleep(d / 10) // the request
			l, err := w.k.Keep("k", lease.Term{Granted: sent, Length: d}, lease.Fixed())
			require.NoError(t, err)
			believed := lease.Term{Length: d}.Believed()
			assert.Equal(t, believed-d/10, l.Remaining())
			time.Sleep(believed - d/10 - 1)
			require.NoError(t, l.Err())
			time.Sleep(time.Nanosecond)
			is(t, l.Err(), lease.ErrOver)
			assert.Zero(t, l.Remaining())
		})
	}
}

func TestALeaseIsRenewedALittleBeforeAThirdOfItsLength(t *testing.T) {
	for _, d := range lengths {
		in(t, func(ctx context.Context, w *world) {
			last := w.k.Now()
			l := w.keep("k", d)
			time.Sleep(3 * d) // the keeper looks at the clock each second of it
			require.NoError(t, l.Err())
			assert.InDelta(t, 9, len(w.made()), 1)
			for _, c := range w.made() {
				assert.Equal(t, batch{{Of: "k", Length: d}}, c.batch)
				assert.GreaterOrEqual(t, c.at-last, d/10*3)
				assert.LessOrEqual(t, c.at-last, d/100*32)
				last = c.at
			}
			require.NoError(t, l.Release(ctx))
		})
	}
}

func TestAStoreThatDoesNotAnswerEndsTheBeliefWithoutBeingWaitedFor(t *testing.T) {
	deaf := make(chan struct{})
	for name, answer := range map[string]func(context.Context, made) ([]error, error){
		"silent": silent,
		"down":   down,
		"deaf":   nil,
		"skips":  func(_ context.Context, c made) ([]error, error) { return nil, lease.ErrSkipped },
	} {
		for _, d := range lengths {
			t.Run(fmt.Sprint(name, " ", d), func(t *testing.T) {
				in(t, func(ctx context.Context, w *world) {
					if name == "deaf" {
						deaf = make(chan struct{})
						answer = func(context.Context, made) ([]error, error) { <-deaf; return nil, nil }
					}
					w.answers(answer)
					begin := w.k.Now()
					l := w.keep("k", d)
					on, stop := l.Context(ctx)
					defer stop()
					<-on.Done()
					assert.Equal(t, lease.Term{Length: d}.Believed(), w.k.Now()-begin)
					var over *lease.Error
					require.ErrorAs(t, context.Cause(on), &over)
					is(t, over, lease.ErrOver)
					require.Error(t, over.Err)
					assert.Equal(t, len(w.made()), over.Tries)
					assert.NotErrorIs(t, over, context.DeadlineExceeded, "it is no deadline of the caller's")
					pauses(t, w, name, d)
					time.Sleep(d)
					assert.Len(t, w.made(), over.Tries, "it is given up")
					if name == "deaf" {
						close(deaf)
					}
				})
			})
		}
	}
}

// pauses checks the times between the calls for a lease of length d in trouble.
func pauses(t *testing.T, w *world, trouble string, d time.Duration) {
	for i, c := range w.made()[1:] {
		pause := d / 12
		if trouble == "silent" || trouble == "deaf" {
			pause = d / 6 // as long as a call may take
		} else if trouble == "skips" && i%2 == 0 {
			pause = 0 // at once, alone
		}
		assert.InDelta(t, pause, c.at-w.made()[i].at, float64(time.Microsecond))
	}
}

func TestAStoreThatAnswersAgainInTimeLosesNothing(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		begin := w.k.Now()
		w.answers(func(ctx context.Context, c made) ([]error, error) {
			if c.at-begin < length*3/4 {
				return silent(ctx, c)
			}
			return nil, nil
		})
		l := w.keep("k", length)
		time.Sleep(3 * length)
		require.NoError(t, l.Err())
		require.NoError(t, l.Release(ctx))
	})
}

func TestAnAnswerThatComesAfterTheEndBringsNothingBack(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		late := make(chan struct{})
		w.answers(func(context.Context, made) ([]error, error) { <-late; return nil, nil })
		l := w.keep("k", length)
		time.Sleep(believed)
		close(late)
		synctest.Wait()
		is(t, l.Err(), lease.ErrOver)
		assert.Zero(t, l.Remaining())
		n := len(w.made())
		time.Sleep(length)
		assert.Len(t, w.made(), n)
	})
}

func TestAnAnswerThatNobodyWaitedForAnyMoreCountsFromItsOwnCall(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		begin := w.k.Now()
		w.answers(func(ctx context.Context, c made) ([]error, error) {
			if len(w.made()) > 1 {
				return nil, errStore
			}
			time.Sleep(length / 3) // a sixth too long
			return nil, nil
		})
		l := w.keep("k", length)
		time.Sleep(length * 7 / 10)
		sent := w.made()[0].at
		assert.Greater(t, sent, begin)
		assert.Equal(t, lease.Term{Granted: sent, Length: length}, l.Term())
		require.NoError(t, l.Release(ctx))
	})
}

func TestALeaseThatTheStoreHasEndedIsLostAtOnceAndNotRenewed(t *testing.T) {
	for name, answer := range map[string]func(context.Context, made) ([]error, error){
		"one of a call": func(context.Context, made) ([]error, error) {
			return []error{fmt.Errorf("held by 7: %w", lease.ErrLost)}, nil
		},
		"the call": func(context.Context, made) ([]error, error) {
			return nil, fmt.Errorf("held by 7: %w", lease.ErrLost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(ctx context.Context, w *world) {
				w.answers(answer)
				var told []error
				l := w.keep("k", length, lease.OnLoss(func(err error) { told = append(told, err) }))
				on, stop := l.Context(ctx)
				defer stop()
				<-on.Done()
				assert.LessOrEqual(t, w.k.Now(), time.Second+length/100*32)
				is(t, context.Cause(on), lease.ErrLost)
				assert.EqualError(t, context.Cause(on), "held by 7: lease: lost")
				time.Sleep(length)
				synctest.Wait()
				assert.Len(t, w.made(), 1)
				assert.Equal(t, []error{context.Cause(on)}, told)
			})
		})
	}
}

// questions are what a holder may ask: the lease, a context of it, or one below that.
var questions = map[string]func(l *lease.Lease, on, below context.Context) error{
	"Err of the lease": func(l *lease.Lease, _, _ context.Context) error { return l.Err() },
	"Err":              func(_ *lease.Lease, on, _ context.Context) error { return on.Err() },
	"Done": func(_ *lease.Lease, on, _ context.Context) error {
		select {
		case <-on.Done():
			return context.Cause(on)
		default:
			return nil
		}
	},
	"Cause": func(_ *lease.Lease, on, _ context.Context) error { return context.Cause(on) },
	"Value": func(_ *lease.Lease, _, below context.Context) error { _ = below.Value("k"); return below.Err() },
	"Check": func(_ *lease.Lease, _, below context.Context) error { return lease.Check(below) },
	"WithCancel": func(_ *lease.Lease, on, _ context.Context) error {
		ctx, cancel := context.WithCancel(on)
		defer cancel()
		return ctx.Err()
	},
	"Remaining": func(l *lease.Lease, _, _ context.Context) error {
		if l.Remaining() == 0 {
			return l.Err()
		}
		return nil
	},
	"a lease below": func(_ *lease.Lease, _, below context.Context) error { return below.Err() },
}

func TestAProcessThatSleptLearnsItFromWhateverItAsks(t *testing.T) {
	for name, ask := range questions {
		t.Run(name, func(t *testing.T) {
			in(t, func(ctx context.Context, w *world) {
				l := w.keep("k", length)
				inner := w.keep("long", 24*time.Hour)
				on, stop := l.Context(ctx)
				defer stop()
				below, cancel := context.WithTimeout(on, time.Hour)
				defer cancel()
				if name == "a lease below" {
					below, cancel = inner.Context(below)
					defer cancel()
				}
				require.NoError(t, ask(l, on, below))
				w.clock.Suspend(length)
				require.Error(t, ask(l, on, below))
				is(t, context.Cause(below), lease.ErrOver)
				var over *lease.Error
				require.ErrorAs(t, context.Cause(on), &over)
				assert.Zero(t, over.Tries, "nobody has tried to renew it")
				assert.NoError(t, over.Err)
				require.NoError(t, inner.Release(ctx))
			})
		})
	}
}

func TestAfterASuspendThatNobodyAsksAboutTheContextIsDoneWithinASecond(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		on, stop := w.keep("k", 24*time.Hour).Context(ctx)
		defer stop()
		below, cancel := context.WithCancel(on)
		defer cancel()
		done := below.Done()
		synctest.Wait() // the keeper waits
		w.clock.Suspend(24 * time.Hour)
		begin := time.Now()
		<-done
		assert.LessOrEqual(t, time.Since(begin), time.Second)
	})
}

func TestAnAnswerThatComesAfterASuspendIsTheEnd(t *testing.T) {
	// The shorter one ends before the term would that the answer has granted.
	for _, suspended := range []time.Duration{length * 2 / 3, length} {
		in(t, func(ctx context.Context, w *world) {
			w.answers(func(context.Context, made) ([]error, error) {
				w.clock.Suspend(suspended)
				return nil, nil
			})
			on, stop := w.keep("k", length).Context(ctx)
			defer stop()
			done := on.Done()
			<-done
			assert.Less(t, w.k.Now(), time.Second+2*length)
			assert.Len(t, w.made(), 1)
			is(t, context.Cause(on), lease.ErrOver)
		})
	}
}

func TestAGrantThatTookTooLongIsNotKept(t *testing.T) {
	in(t, func(ctx context.Context, w *world) {
		sent := w.k.Now()
		time.Sleep(believed)
		l, err := w.k.Keep("k", lease.Term{Granted: sent, Length: length})
		is(t, err, lease.ErrOver)
		assert.Nil(t, l)
		_, err = w.k.Keep("k", lease.Term{})
		is(t, err, lease.ErrOver)
		assert.Panics(t, func() { _, _ = w.k.Keep("k", lease.Term{Granted: w.k.Now() + 1, Length: length}) })
	})
}

func TestAKeeperOfNothingHasNoTaskAndNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			var lost atomic.Bool
			var calls atomic.Int64
			renew := func(context.Context, []lease.Renewal[int]) ([]error, error) {
				calls.Add(1)
				if lost.Load() {
					return nil, lease.ErrLost
				}
				return nil, nil
			}
			k := lease.NewKeeper(ctx, renew)
			for i := range 10 {
				l, err := k.Keep(i, lease.Term{Granted: k.Now(), Length: time.Second})
				require.NoError(t, err)
				time.Sleep(time.Minute)
				if i%2 == 0 {
					require.NoError(t, l.Release(ctx))
				} else {
					lost.Store(true)
					time.Sleep(time.Minute)
					lost.Store(false)
				}
				before := calls.Load()
				time.Sleep(time.Hour)
				assert.Equal(t, before, calls.Load())
			}
			return nil
		}))
	})
}

func TestTheErrorsOfARenewalAreTold(t *testing.T) {
	const over = "lease: the term is over"
	for _, c := range []struct {
		want string
		err  lease.Error
	}{
		{over, lease.Error{Reason: lease.ErrOver}},
		{over + ": renewals without success: 3", lease.Error{Reason: lease.ErrOver, Tries: 3}},
		{over + ": renewals without success: 3; the last: connection refused",
			lease.Error{Reason: lease.ErrOver, Tries: 3, Err: errStore}},
		{"lease: lost", lease.Error{Reason: lease.ErrLost, Err: lease.ErrLost}},
		{"lease: lost: connection refused", lease.Error{Reason: lease.ErrLost, Err: errStore}},
		{"lease: ended", lease.Error{Reason: lease.ErrEnded}},
		{"lease: ended: async: scope has ended", lease.Error{Reason: lease.ErrEnded, Err: async.ErrScopeEnded}},
	} {
		e := &c.err
		assert.EqualError(t, e, c.want)
		is(t, e, e.Reason)
		assert.Equal(t, e.Reason != lease.ErrOver && e.Err == errStore, errors.Is(e, errStore))
	}
}

// A lease was over before the scope of its keeper ended, and nobody had looked.
func TestOnLossIsCalledForALeaseThatIsOverWhenItsKeeperEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, told := lease.NewClock(), 0
		var l *lease.Lease
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) (err error) {
			k := lease.NewKeeper(ctx, func(context.Context, []lease.Renewal[string]) ([]error, error) { return nil, nil }, lease.WithClock(clock))
			l, err = k.Keep("leader", lease.Term{Granted: k.Now(), Length: 10 * time.Second}, lease.OnLoss(func(error) { told++ }))
			clock.Suspend(time.Minute)
			return err
		}))
		require.ErrorIs(t, l.Err(), lease.ErrOver)
		assert.Equal(t, 1, told)
	})
}
