package lease

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// Between the plan of a call and the call its leases may be released, or come to their end. A
// renewal that is sent all the same would come after the release.
func TestACallLeavesOutWhatWasLetGoSinceItWasPlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			var sent []string
			k := NewKeeper(ctx, func(_ context.Context, batch []Renewal[string]) ([]error, error) {
				for _, r := range batch {
					sent = append(sent, r.Of)
				}
				return nil, nil
			})
			leases := map[string]*Lease{}
			for _, of := range []string{"kept", "released", "lost"} {
				l, err := k.Keep(of, Term{Granted: k.Now(), Length: time.Minute})
				require.NoError(t, err)
				leases[of] = l
			}
			k.mu.Lock()
			all := []*Lease{leases["kept"], leases["released"], leases["lost"]}
			c := k.newCallLocked(ctx, all, 0, k.Now())
			k.mu.Unlock()
			waiting := async.Start(ctx, func(ctx context.Context) error { return leases["released"].Release(ctx) })
			synctest.Wait()
			leases["lost"].finish(&Error{Reason: ErrLost})
			assert.True(t, waiting.IsRunning(), "a release waits for a call that is planned")
			k.send(c)
			assert.Equal(t, []string{"kept"}, sent)
			_, err := waiting.Join(ctx)
			require.NoError(t, err)
			for _, l := range all {
				require.NoError(t, l.Release(ctx))
				assert.Empty(t, l.flights, "nothing is kept")
				assert.Nil(t, l.contexts)
			}
			assert.Empty(t, k.kept)
			return nil
		}))
	})
}

// The clock goes on between the look of End and its end.
func TestAnEndThatComesTooLateIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			k := NewKeeper(ctx, func(context.Context, []Renewal[string]) ([]error, error) { return nil, nil })
			l, err := k.Keep("k", Term{Granted: k.Now(), Length: time.Minute})
			require.NoError(t, err)
			k.set.clock.Suspend(time.Minute)
			assert.False(t, l.finish(&Error{Reason: ErrEnded}))
			require.ErrorIs(t, l.End(), ErrOver)
			return nil
		}))
	})
}

// The timer stops when nothing is kept, and the next lease may be kept at that moment.
func TestALeaseIsKeptAlsoIfTheTimerIsJustStopped(t *testing.T) {
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		for i := range 3 {
			k := NewKeeper(ctx, func(context.Context, []Renewal[int]) ([]error, error) { return nil, nil })
			async.Go(ctx, func(ctx context.Context) error {
				for range 2_000 {
					l, err := k.Keep(i, Term{Granted: k.Now(), Length: time.Hour})
					if err != nil {
						return err
					}
					for range 10 {
						runtime.Gosched()
						if err := l.Err(); err != nil {
							return err
						}
					}
					if err := l.Release(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	}))
}

// The goroutine that has noted the end of a belief has not come to a context yet: whoever asks
// that must not go on meanwhile.
func TestAContextThatIsAskedTellsOfAnEndThatIsBeingNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			k := NewKeeper(ctx, func(context.Context, []Renewal[string]) ([]error, error) { return nil, nil })
			for _, reason := range []error{ErrLost, ErrOver, ErrEnded} {
				for name, ask := range map[string]func(ctx context.Context) bool{
					"Err":   func(ctx context.Context) bool { return ctx.Err() != nil },
					"Value": func(ctx context.Context) bool { return ctx.Value("k") == nil && context.Cause(ctx) != nil },
					"Done": func(ctx context.Context) bool {
						select {
						case <-ctx.Done():
							return true
						default:
							return false
						}
					},
				} {
					l, err := k.Keep("k", Term{Granted: k.Now(), Length: time.Minute})
					require.NoError(t, err)
					note := func(ctx context.Context) error {
						assert.False(t, ask(ctx))
						l.ended.Store(&end{reason: reason, cause: reason})
						assert.True(t, ask(ctx), "%s, %v", name, reason)
						assert.Equal(t, reason, context.Cause(ctx))
						return nil
					}
					on, stop := l.Context(ctx)
					require.NoError(t, note(on))
					stop()
					l.ended.Store(nil)
					require.ErrorIs(t, l.Run(ctx, note), reason)
					require.NoError(t, l.Release(ctx))
				}
			}
			return nil
		}))
	})
}

// A timer of nothing would have the program wake up each second.
func TestTheTimerOfAKeeperStandsStillWhileNothingIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			k := NewKeeper(ctx, func(context.Context, []Renewal[string]) ([]error, error) { return nil, nil })
			assert.Nil(t, k.timer)
			for _, sleep := range []time.Duration{0, time.Minute} {
				l, err := k.Keep("k", Term{Granted: k.Now(), Length: time.Minute})
				require.NoError(t, err)
				time.Sleep(sleep)
				require.NoError(t, l.Release(ctx))
				synctest.Wait()
				assert.False(t, k.timer.Stop())
			}
			return nil
		}))
	})
}
