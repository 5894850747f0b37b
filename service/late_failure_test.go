package service_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// lateFailures are the ways in which a run fails whose function has returned nil.
var lateFailures = map[string]struct {
	start func(ctx context.Context)
	is    error
}{
	"a task returns an error":          {startFailing(func() error { return errPlanted }), errPlanted},
	"a task says that it was canceled": {startFailing(func() error { return context.Canceled }), context.Canceled},
	"a task calls Goexit":              {startFailing(func() error { runtime.Goexit(); return nil }), async.ErrGoexit},
	"an exit hook fails": {func(ctx context.Context) {
		startFailing(func() error { return nil })(ctx)
		async.OnExit(ctx, func(context.Context, error) error { return errPlanted })
	}, errPlanted},
	"a task panics": {startFailing(func() error { panic(errPlanted) }), errPlanted},
}

// startFailing returns what starts a task that lasts for a minute, and ends with f.
func startFailing(f func() error) func(ctx context.Context) {
	return func(ctx context.Context) {
		async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Minute); return f() })
	}
}

// until waits for quit, or the end of ctx, which is an error.
func until(ctx context.Context, quit <-chan struct{}) error {
	select {
	case <-quit:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runOrPanic calls Run, and returns a panic as an error.
func runOrPanic(ctx context.Context, services []service.Service, opts ...service.Option) (err error) {
	defer func() {
		if p, ok := recover().(*async.PanicError); ok {
			err = p
		}
	}()
	return service.Run(ctx, services, opts...)
}

// A run fails by a task that it has started, although Run has returned nil: it is made again, and the failure is logged as
// any other.
func TestARunThatFailsAfterItsReturnIsMadeAgain(t *testing.T) {
	for name, fails := range lateFailures {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				var log bytes.Buffer
				runs := 0
				time.AfterFunc(time.Hour, func() { stop(errStop) })
				require.NoError(t, runOrPanic(ctx, []service.Service{supervised(0, func(ctx context.Context) error {
					if runs++; runs > 1 {
						return await(ctx)
					}
					fails.start(ctx)
					return nil
				})}, service.Log(slog.New(slog.NewTextHandler(&log, nil)))))
				assert.Equal(t, 2, runs)
				assert.Contains(t, log.String(), "service worker has failed, and is started again")
				assert.Contains(t, log.String(), fails.is.Error())
			})
		})
	}
}

// The turn to stop comes while such a service waits to be run again: it is run once more at once, and drained.
func TestAStopAfterARunThatHasFailedAfterItsReturn(t *testing.T) {
	for name, fails := range lateFailures {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				begun, runs, quit := time.Now(), 0, make(chan struct{})
				s := service.Service{Name: "worker", Options: restarts(0), Drain: func(context.Context) error { close(quit); return nil }}
				s.Run = func(ctx context.Context) error {
					if runs++; runs > 1 {
						return until(ctx, quit)
					}
					fails.start(ctx)
					return nil
				}
				time.AfterFunc(2*time.Minute, func() { stop(errStop) })
				require.NoError(t, runOrPanic(ctx, []service.Service{s}, service.Grace(2*time.Hour), service.Log(nil)))
				assert.Equal(t, 2, runs)
				assert.Equal(t, 2*time.Minute, time.Since(begun), "no pause is waited out")
			})
		})
	}
}

// A failure that comes when the turn to stop has come is not retried: nothing is waited for, and the error is told.
func TestARunThatFailsAfterItsReturnInTheDrain(t *testing.T) {
	for name, fails := range lateFailures {
		for of, drained := range map[string]bool{"that was drained": true, "that had returned before": false} {
			t.Run(name+" in a run "+of, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
					begun, runs, quit := time.Now(), 0, make(chan struct{})
					s := service.Service{Name: "worker", Options: restarts(0), Drain: func(context.Context) error { close(quit); return nil }}
					s.Run = func(ctx context.Context) error {
						runs++
						if drained && until(ctx, quit) != nil {
							return errors.New("it was not drained")
						}
						fails.start(ctx)
						return nil
					}
					time.AfterFunc(time.Second, func() { stop(errStop) })
					err := runOrPanic(ctx, []service.Service{s}, service.Grace(2*time.Hour))
					require.ErrorIs(t, err, fails.is)
					assert.NotContains(t, err.Error(), "when it was to stop")
					assert.Equal(t, 1, runs)
					assert.LessOrEqual(t, time.Since(begun), time.Second+time.Minute)
				})
			})
		}
	}
}

// A service that was never ready is not run again, whichever way it fails.
func TestARunThatFailsAfterItsReturnAndWasNeverReady(t *testing.T) {
	for name, fails := range lateFailures {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				runs := 0
				s := supervised(time.Hour, func(ctx context.Context) error { runs++; fails.start(ctx); return nil })
				require.ErrorIs(t, runOrPanic(ctx, []service.Service{s}), fails.is)
				assert.Equal(t, 1, runs)
			})
		})
	}
}

// A resource is told by its ctx that something in it has failed, and returns nil: it is opened again.
func TestAResourceThatFailsIsLoggedAndDoesNotHoldUpAStop(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		var log bytes.Buffer
		begun, opened := time.Now(), 0
		r := service.Resource("journal", func(ctx context.Context) error {
			opened++
			startFailing(func() error { return errPlanted })(ctx)
			return nil
		})
		r.Options = restarts(0)
		time.AfterFunc(63*time.Minute, func() { stop(errStop) }) // it has failed twice
		require.NoError(t, service.Run(ctx, []service.Service{r}, service.Grace(2*time.Hour), service.Log(slog.New(slog.NewTextHandler(&log, nil)))))
		assert.Equal(t, 2, opened)
		assert.Less(t, time.Since(begun), 64*time.Minute)
		assert.Contains(t, log.String(), "planted")
	})
}

// A missed beat fails a run whose function returns nil then, as a loop does.
func TestARunThatHasMissedItsBeatAndReturnsNil(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		var log bytes.Buffer
		begun, runs, quit := time.Now(), 0, make(chan struct{})
		s := service.Service{Name: "worker", Options: append(restarts(0), async.Heartbeat(time.Second)), Drain: func(context.Context) error { close(quit); return nil }}
		s.Run = func(ctx context.Context) error {
			if runs++; runs > 1 {
				return until(ctx, quit)
			}
			<-ctx.Done()
			return nil
		}
		time.AfterFunc(time.Minute, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{s}, service.Grace(2*time.Hour), service.Log(slog.New(slog.NewTextHandler(&log, nil)))))
		assert.Equal(t, 2, runs)
		assert.Equal(t, time.Minute, time.Since(begun))
		assert.Contains(t, log.String(), "beat")
	})
}

// Failures stand in the order in which they came: that of a task is not put before another because Run had returned long ago.
func TestALateFailureStandsInItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		err := service.Run(ctx, []service.Service{
			{Name: "late", Drain: func(context.Context) error { return nil }, Run: func(ctx context.Context) error {
				startFailing(func() error { return errPlanted })(ctx)
				return nil
			}},
			{Name: "first", Run: func(context.Context) error { time.Sleep(59 * time.Second); return errStop }},
		})
		require.EqualError(t, err, "service first: "+errStop.Error()+"\n\tservice late: planted")
	})
}

// A loop that a function has started ends because the Run around drains: that ends nobody before their turn.
func TestALoopOfATaskThatTakesNoMoreEndsNobodyBeforeTheirTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		d := newDiary()
		quick := service.Service{Name: "loop", Run: func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-service.Draining(ctx); return nil })
			return nil
		}}
		time.AfterFunc(time.Second, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{
			nest("nest", d.worker("database", time.Second), quick), d.worker("web", 10*time.Second),
		}, service.Delay(time.Second)))
		assert.Equal(t, []string{"web drains", "web ends", "database drains", "database ends"}, d.read()[2:])
	})
}

// A panic does not end the Drain that is beside it.
func TestARunThatPanicsInTheDrainLeavesTheDrainAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		var slept error
		quit := make(chan struct{})
		time.AfterFunc(time.Second, func() { stop(errStop) })
		err := runOrPanic(ctx, []service.Service{{Name: "worker", Run: func(ctx context.Context) error {
			if err := until(ctx, quit); err != nil {
				return err
			}
			panic(errPlanted)
		}, Drain: func(ctx context.Context) error { close(quit); slept = async.Sleep(ctx, time.Second); return nil }}})
		require.ErrorIs(t, err, errPlanted)
		require.NoError(t, slept)
	})
}

// A run that has missed its beat in the drain has failed, although its function returns nil.
func TestARunThatMissesItsBeatInTheDrain(t *testing.T) {
	for name, options := range map[string][]async.TaskOption{"with Restart": restarts(0), "without": nil} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				runs, quit := 0, make(chan struct{})
				s := service.Service{Name: "worker", Options: append(options, async.Heartbeat(time.Minute)), Drain: func(context.Context) error { close(quit); return nil }}
				s.Run = func(ctx context.Context) error {
					runs++
					<-quit
					<-ctx.Done() // what is left takes too long
					return nil
				}
				time.AfterFunc(time.Second, func() { stop(errStop) })
				err := service.Run(ctx, []service.Service{s}, service.Grace(time.Hour), service.Log(nil))
				require.ErrorAs(t, err, new(*async.WatchdogError))
				require.ErrorContains(t, err, "service worker: ")
				assert.Equal(t, 1, runs)
			})
		})
	}
}
