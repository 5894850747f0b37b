package async_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

var errUnhealthy = errors.New("unhealthy")

// checks returns a check that gives one outcome after another, then the last
// one again, and notes when it was called.
func checks(at *[]time.Duration, outcomes ...error) func(context.Context) error {
	start := time.Now()
	n := 0
	return func(context.Context) error {
		*at = append(*at, time.Since(start))
		err := outcomes[min(n, len(outcomes)-1)]
		n++
		return err
	}
}

func TestAFailingCheckAbortsTheHandler(t *testing.T) {
	awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		own := &awaitError{3}
		var at []time.Duration
		var cause, hookCause error
		f := async.Watch(ctx, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			require.Equal(t, 2*time.Second, time.Since(start))
			cause = context.Cause(ctx)
			return 0, own
		}, async.Every(time.Second), checks(&at, nil, errUnhealthy),
			async.OnAbort(func(_ context.Context, why error) error { hookCause = why; return nil }))
		_, err := f.Await(ctx, 0)
		var dog *async.WatchdogError
		require.ErrorAs(t, err, &dog)
		require.Equal(t, errUnhealthy, dog.Err)
		require.True(t, cause == error(dog))
		require.True(t, hookCause == error(dog))
		require.ErrorIs(t, err, errUnhealthy)
		var mine *awaitError
		require.ErrorAs(t, err, &mine)
		require.Equal(t, own, mine)
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, at, "the first comes after an interval")
		time.Sleep(time.Hour)
		require.Len(t, at, 2, "none after the future has settled")
	})
}

func TestWhatAWatchComesTo(t *testing.T) {
	for name, test := range map[string]struct {
		outcomes []error
		opts     []async.WatchOption
		work     time.Duration
		fails    bool
		checks   int
		took     time.Duration
	}{
		"the handler ends first":       {[]error{nil}, nil, 3500 * time.Millisecond, false, 3, 3500 * time.Millisecond},
		"before the first check":       {[]error{errUnhealthy}, nil, 500 * time.Millisecond, false, 0, 500 * time.Millisecond},
		"two failures tolerated":       {[]error{errUnhealthy, errUnhealthy, nil}, []async.WatchOption{async.Tolerate(2)}, 9500 * time.Millisecond, false, 9, 9500 * time.Millisecond},
		"again after a success":        {[]error{errUnhealthy, nil, errUnhealthy, nil}, []async.WatchOption{async.Tolerate(1)}, 9500 * time.Millisecond, false, 9, 9500 * time.Millisecond},
		"one more than tolerated":      {[]error{nil, errUnhealthy}, []async.WatchOption{async.Tolerate(2)}, time.Hour, true, 4, 4 * time.Second},
		"the task's own limit is over": {[]error{nil}, []async.WatchOption{async.Timeout(1500 * time.Millisecond)}, time.Hour, true, 1, 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				var at []time.Duration
				d, err := async.Watch(ctx, sleeper(test.work), async.Every(time.Second), checks(&at, test.outcomes...), test.opts...).Await(ctx, 0)
				require.Equal(t, test.took, time.Since(start))
				require.Len(t, at, test.checks)
				if test.fails {
					require.Error(t, err)
				} else {
					require.NoError(t, err)
					require.Equal(t, test.work, d)
				}
				time.Sleep(time.Hour)
				require.Len(t, at, test.checks)
			})
		})
	}
}

func TestAHandlerThatSucceedsAllTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var at []time.Duration
		v, err := async.Watch(ctx, obedient(time.Second, 5, nil), async.Every(time.Second), checks(&at, errUnhealthy)).Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 5, v)
	})
}

// TestACheckThatRunsAsTheHandlerEnds is told to stop, and the future waits.
func TestACheckThatRunsAsTheHandlerEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		start := time.Now()
		ended := false
		_, err := async.Watch(ctx, sleeper(1500*time.Millisecond), async.Every(time.Second), func(ctx context.Context) error {
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), async.ErrDismissed)
			time.Sleep(time.Second)
			ended = true
			return ctx.Err()
		}).Await(ctx, 0)
		require.NoError(t, err)
		require.True(t, ended)
		require.Equal(t, 2500*time.Millisecond, time.Since(start))
	})
}

func TestNestedWatchdogs(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		other := errors.New("disk full")
		var http, disk []time.Duration
		_, err := async.Watch(ctx, func(ctx context.Context) (int, error) {
			return async.Watch(ctx, obedient(0, 0, errCancelBoom), async.Every(time.Second), checks(&http, nil)).Await(ctx, 0)
		}, async.Every(2600*time.Millisecond), checks(&disk, nil, other), async.Grace(time.Minute)).Await(ctx, 0)
		require.ErrorIs(t, err, other)
		require.NotErrorIs(t, err, errUnhealthy)
		require.Len(t, disk, 2)
		require.Len(t, http, 5)
	})
}

func TestAWatchInTheOnlySlotOfALimit(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var at []time.Duration
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			_, err := async.Watch(ctx, obedient(0, 0, errCancelBoom), async.Every(time.Second), checks(&at, errUnhealthy)).Await(ctx, 0)
			require.ErrorIs(t, err, errUnhealthy)
			return nil
		}, async.Limit(1)))
	})
}

func TestAPanicOfACheckAbortsTheHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_, err := async.Watch(ctx, obedient(0, 0, nil), async.Every(time.Second), func(context.Context) error { plantedPanic(); return nil }).Await(ctx, 0)
		var p *async.PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, errPlanted, p.Unwrap())
	})
}

// TestHeartbeat has a handler that beats at the times given, in seconds, and
// then no more.
func TestHeartbeat(t *testing.T) {
	for name, test := range map[string]struct {
		beats []float64
		work  float64 // what the handler takes
		died  float64 // when it is aborted; 0: it is not
	}{
		"it goes on":       {[]float64{1, 2, 3, 4, 5.9, 7.5}, 9, 0},
		"never":            {nil, 100, 2},
		"it stops":         {[]float64{1, 2.5}, 100, 4.5},
		"too late":         {[]float64{1, 3.5}, 100, 3},
		"short, so unseen": {nil, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			awaitInRootAndScope(t, func(t *testing.T, ctx context.Context) {
				start := time.Now()
				seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
				_, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
					for _, at := range append(test.beats, test.work) {
						if err := async.Sleep(ctx, seconds(at)-time.Since(start)); err != nil {
							return 0, err
						}
						async.Beat(ctx)
					}
					return 1, nil
				}, async.Heartbeat(2*time.Second)).Await(ctx, 0)
				if test.died == 0 {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, async.ErrNoBeat)
				var dog *async.WatchdogError
				require.ErrorAs(t, err, &dog)
				require.Equal(t, seconds(test.died), time.Since(start))
			})
		})
	}
}

func TestBeatsCountForAllThatTheyArePartOf(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		_, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
			return async.Execute(ctx, func(ctx context.Context) (int, error) {
				return 1, async.Scope(ctx, func(ctx context.Context) error {
					for range 10 {
						async.Beat(ctx)
						if err := async.Sleep(ctx, 900*time.Millisecond); err != nil {
							return err
						}
					}
					return nil
				})
			}, async.Heartbeat(time.Second)).Await(ctx, 0)
		}, async.Heartbeat(time.Second)).Await(ctx, 0)
		require.NoError(t, err)
	})
	async.Beat(t.Context()) // nobody listens, which is no fault
}

// TestNoBeatIsMissedOnceTheHandlerHasReturned although what it started goes on.
func TestNoBeatIsMissedOnceTheHandlerHasReturned(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		v, err := async.Execute(ctx, func(ctx context.Context) (int, error) {
			async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Minute) })
			return 1, nil
		}, async.Heartbeat(time.Second)).Await(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, 1, v)
	})
}

func TestMisuseOfWatchdogsPanics(t *testing.T) {
	ctx, every, ok := t.Context(), async.Every(1), func(context.Context) error { return nil }
	for name, f := range map[string]func(){
		"nil handler":  func() { async.Watch[int](ctx, nil, every, ok) },
		"nil interval": func() { async.Watch(ctx, answer, nil, ok) },
		"nil check":    func() { async.Watch(ctx, answer, every, nil) },
		"no time":      func() { async.Heartbeat(0) },
	} {
		t.Run(name, func(t *testing.T) { require.Panics(t, f) })
	}
}

// TestAMissedBeatFailsARun: whatever the handler returns then. Each run has all of
// its time to beat.
func TestAMissedBeatFailsARun(t *testing.T) {
	for name, returned := range map[string]func(ctx context.Context) error{
		"why":   func(ctx context.Context) error { return ctx.Err() },
		"nil":   func(context.Context) error { return nil },
		"other": func(context.Context) error { return errPlanted },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				hooks, runs := 0, 0
				start := func() *async.Future[struct{}] {
					return async.Start(ctx, func(ctx context.Context) error {
						runs++
						for range 3 {
							async.Beat(ctx)
							time.Sleep(time.Second)
						}
						<-ctx.Done()
						return returned(ctx)
					}, everySecond, async.Heartbeat(2*time.Second), async.OnAbort(func(_ context.Context, cause error) error {
						require.ErrorIs(t, cause, async.ErrNoBeat)
						hooks++
						return nil
					}))
				}
				_, err := start().Join(ctx)
				require.ErrorAs(t, err, new(*async.RestartError))
				if name == "other" {
					require.ErrorIs(t, err, errPlanted)
				}
				require.ErrorIs(t, err, async.ErrNoBeat)
				require.Equal(t, 5, runs)
				require.Equal(t, 5, hooks)
			})
		})
	}
}

// TestABeatCountsForTheRunOfItsContext: not for the one that follows.
func TestABeatCountsForTheRunOfItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var before context.Context
		_, err := async.Start(ctx, func(ctx context.Context) error {
			if before == nil {
				before = ctx
				return errRun
			}
			for ctx.Err() == nil {
				async.Beat(before)
				time.Sleep(time.Second)
			}
			return async.Final(context.Cause(ctx))
		}, everySecond, async.Heartbeat(10*time.Second), async.Timeout(time.Minute)).Join(ctx)
		require.ErrorIs(t, err, async.ErrNoBeat)
	})
}
