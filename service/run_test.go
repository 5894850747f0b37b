package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/service"
)

func TestFirstNilEndsAll(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		var cause error
		require.NoError(t, service.Run(ctx, []service.Service{
			{Name: "server", Run: func(ctx context.Context) error {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return cause
			}},
			{Name: "leader", Run: func(ctx context.Context) error { return async.Sleep(ctx, time.Second) }},
		}))
		assert.Equal(t, async.ErrDismissed, cause)
	})
}

func TestOneThatMayEndEndsNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		begun := time.Now()
		time.AfterFunc(time.Hour, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{
			{Name: "server", Run: await},
			{Name: "job", Run: func(ctx context.Context) error { return async.Sleep(ctx, time.Second) }, MayEnd: true},
		}))
		assert.Equal(t, time.Hour, time.Since(begun))
	})
}

func TestAFailureOfOneThatMayEndEndsAll(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		err := service.Run(ctx, []service.Service{
			{Name: "server", Run: await},
			{Name: "job", Run: func(context.Context) error { return errPlanted }, MayEnd: true},
		})
		require.EqualError(t, err, "service job: planted")
		require.ErrorIs(t, err, errPlanted)
	})
}

func TestRunEndsWhenAllHaveEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		begun := time.Now()
		job := func(d time.Duration) service.Service {
			return service.Service{Run: func(ctx context.Context) error { return async.Sleep(ctx, d) }, MayEnd: true}
		}
		require.NoError(t, service.Run(ctx, []service.Service{job(time.Second), job(time.Minute)}, service.Delay(time.Hour)))
		assert.Equal(t, time.Minute, time.Since(begun))
		require.NoError(t, service.Run(ctx, nil), "no services: all have ended")
		assert.Equal(t, time.Minute, time.Since(begun))
	})
}

func TestStopsInReverseOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		d := newDiary()
		plain := service.Service{Name: "plain", Run: func(ctx context.Context) error {
			d.note("plain runs")
			<-ctx.Done()
			d.note(fmt.Sprint("plain is told: ", context.Cause(ctx)))
			return ctx.Err()
		}}
		time.AfterFunc(time.Second, func() {
			assert.ElementsMatch(t, []string{"a runs", "plain runs", "c runs"}, d.read())
			stop(errStop)
		})
		require.NoError(t, service.Run(ctx, []service.Service{d.worker("a", time.Second), plain, d.worker("c", time.Second)}))
		assert.Equal(t, []string{"c drains", "c ends", "plain is told: told to stop", "a drains", "a ends"}, d.read())
	})
}

func TestTheNextIsStoppedWhenAllOfTheOneBeforeHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		d := newDiary()
		last := service.Service{
			Run: func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					defer d.note("its child ends")
					return async.Sleep(ctx, 5*time.Second)
				})
				<-service.Draining(ctx)
				time.Sleep(time.Second)
				d.note("Run ends")
				return nil
			},
			Drain: func(ctx context.Context) error {
				defer d.note("Drain ends")
				return async.Sleep(ctx, 3*time.Second)
			},
		}
		first := service.Service{Run: func(ctx context.Context) error {
			<-ctx.Done()
			d.note("the first is told")
			return nil
		}}
		time.AfterFunc(time.Second, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{first, last}))
		assert.Equal(t, []string{"Run ends", "Drain ends", "its child ends", "the first is told"}, d.read())
	})
}

// A loop that takes no more once Draining is closed, and has a Drain that does nothing,
// is not cancelled with what it has taken.
func TestWhatALoopHasTakenIsNotCancelledAtTheDrain(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		var done atomic.Int32
		loop := service.Service{
			Run: func(ctx context.Context) error {
				for {
					select {
					case <-service.Draining(ctx):
						return nil
					case <-time.After(time.Second):
						async.Go(ctx, func(ctx context.Context) error {
							err := async.Sleep(ctx, 10*time.Second)
							done.Add(1)
							return err
						})
					}
				}
			},
			Drain: func(context.Context) error { return nil },
		}
		time.AfterFunc(5500*time.Millisecond, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{loop}, service.Delay(time.Second)))
		assert.EqualValues(t, 5, done.Load())
	})
}

func TestACtxThatIsDoneStartsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		stop(errStop)
		require.NoError(t, service.Run(ctx, []service.Service{{Run: func(context.Context) error {
			t.Error("it was run")
			return nil
		}}}, service.Delay(time.Hour)))
	})
}

func TestServicesHaveTheValuesOfCtxAndNotItsEnd(t *testing.T) {
	type key struct{}
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		ctx, cancel := context.WithTimeout(context.WithValue(ctx, key{}, "value"), time.Second)
		defer cancel()
		drained := make(chan struct{})
		require.NoError(t, service.Run(ctx, []service.Service{{
			Run: func(ctx context.Context) error {
				assert.Equal(t, "value", ctx.Value(key{}))
				_, limited := ctx.Deadline()
				assert.False(t, limited)
				<-drained
				return ctx.Err()
			},
			Drain: func(ctx context.Context) error {
				assert.Equal(t, "value", ctx.Value(key{}))
				defer close(drained)
				return async.Sleep(ctx, 3*time.Second)
			},
		}}))
	})
}

func TestWhatAServiceReturnsBecauseItWasToldIsNoFailure(t *testing.T) {
	killed := func(t *testing.T, script string) error {
		t.Helper()
		if runtime.GOOS == "windows" || runtime.GOOS == "js" {
			t.Skip("no shell")
		}
		err := exec.Command("sh", "-c", script).Run()
		require.Error(t, err)
		return err
	}
	for name, test := range map[string]struct {
		says func(t *testing.T, ctx context.Context) error
		want bool // a failure
	}{
		"nil":                {func(*testing.T, context.Context) error { return nil }, false},
		"ctx.Err":            {func(_ *testing.T, ctx context.Context) error { return ctx.Err() }, false},
		"the cause":          {func(_ *testing.T, ctx context.Context) error { return context.Cause(ctx) }, false},
		"wrapped":            {func(_ *testing.T, ctx context.Context) error { return fmt.Errorf("loop: %w", ctx.Err()) }, false},
		"ErrServerClosed":    {func(*testing.T, context.Context) error { return http.ErrServerClosed }, false},
		"joined":             {func(_ *testing.T, ctx context.Context) error { return errors.Join(http.ErrServerClosed, ctx.Err()) }, false},
		"signal: killed":     {func(t *testing.T, _ context.Context) error { return killed(t, "kill -9 $$") }, false},
		"signal: terminated": {func(t *testing.T, _ context.Context) error { return fmt.Errorf("child: %w", killed(t, "kill $$")) }, false},
		"143, as shells say": {func(t *testing.T, _ context.Context) error { return killed(t, "exit 143") }, false},
		"a poll":             {func(_ *testing.T, ctx context.Context) error { return polled(ctx) }, false},
		"exit status 1":      {func(t *testing.T, _ context.Context) error { return killed(t, "exit 1") }, true},
		"a failure":          {func(*testing.T, context.Context) error { return errPlanted }, true},
		"joined with one":    {func(_ *testing.T, ctx context.Context) error { return errors.Join(errPlanted, ctx.Err()) }, true},
		"another's deadline": {func(*testing.T, context.Context) error { return context.DeadlineExceeded }, true},
		"an end of a file":   {func(_ *testing.T, ctx context.Context) error { return fmt.Errorf("%w after %w", io.EOF, ctx.Err()) }, true},
		"Unwrap that panics": {func(*testing.T, context.Context) error { return panicsInUnwrap{} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(asynctest.Context(t))
			started := make(chan struct{})
			go func() {
				<-started
				stop(errStop)
			}()
			err := service.Run(ctx, []service.Service{{Name: "x", Run: func(ctx context.Context) error {
				close(started)
				<-ctx.Done()
				return test.says(t, ctx)
			}}})
			if !test.want {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), "service x: ")
		})
	}
}

// polled returns the error of a poll that has lived through failures and was stopped.
func polled(ctx context.Context) error {
	_, err := async.Poll(ctx, async.Every(time.Second), func(context.Context) (int, bool, error) {
		return 0, false, async.Again(errPlanted)
	}).Wait(context.WithoutCancel(ctx))
	return err
}

type panicsInUnwrap struct{}

func (panicsInUnwrap) Error() string { return "panics" }
func (panicsInUnwrap) Unwrap() error { panic("in Unwrap") }

func TestTheSameUnaskedIsAFailure(t *testing.T) {
	for name, says := range map[string]error{
		"ErrServerClosed": http.ErrServerClosed,
		"Canceled":        context.Canceled,
		"DeadlineExceeded": fmt.Errorf("call: %w",
			context.DeadlineExceeded),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
				err := service.Run(ctx, []service.Service{
					{Name: "other", Run: await},
					{Name: "x", Run: func(context.Context) error { return says }},
				})
				require.ErrorIs(t, err, says)
				assert.Equal(t, "service x: "+says.Error(), err.Error())
			})
		})
	}
}

// A service that was wired to the ctx of Run itself ends as soon as that is done,
// before it is told.
func TestTheEndOfTheCtxOfRunIsNoFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, outer context.Context, stop context.CancelCauseFunc) {
		closed := func(context.Context) error {
			<-outer.Done()
			return http.ErrServerClosed
		}
		time.AfterFunc(time.Second, func() { stop(errStop) })
		require.NoError(t, service.Run(outer, []service.Service{
			{Run: func(context.Context) error { return await(outer) }},
			{Run: func(context.Context) error { return fmt.Errorf("x: %w", await(outer)) }},
			{Run: closed},
		}, service.Delay(time.Minute)))
		expired, cancel := context.WithTimeout(context.WithoutCancel(outer), time.Second)
		defer cancel()
		require.NoError(t, service.Run(expired, []service.Service{{Run: func(context.Context) error { return await(expired) }}}))
	})
}

func TestErrorsAtTheStopAreListedBehindTheFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		errDrain, errRun := errors.New("cannot flush"), errors.New("cannot close")
		err := service.Run(ctx, []service.Service{
			{Name: "closer", Run: func(ctx context.Context) error {
				<-ctx.Done()
				return errRun
			}},
			{Name: "flusher", Run: func(ctx context.Context) error {
				<-service.Draining(ctx)
				return nil
			}, Drain: func(context.Context) error { return errDrain }},
			{Name: "writer", Run: func(ctx context.Context) error {
				<-service.Draining(ctx)
				time.Sleep(time.Second) // the flusher has ended by then
				return nil
			}, Drain: func(context.Context) error { return errDrain }},
			{Name: "worker", Run: func(ctx context.Context) error {
				_ = async.Sleep(ctx, time.Second)
				return errPlanted
			}},
		})
		require.EqualError(t, err, "service worker: planted\n\tservice writer: drain: cannot flush\n\tservice closer: cannot close")
		require.ErrorIs(t, err, errRun)
	})
}

// One service fails because another did, and is first to have ended.
func TestTheFirstToFailComesFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, _ context.CancelCauseFunc) {
		failed := make(chan struct{})
		err := service.Run(ctx, []service.Service{
			{Name: "second", Run: func(context.Context) error {
				<-failed
				return errors.New("no database")
			}},
			{Name: "first", Run: func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					<-ctx.Done()
					close(failed)
					time.Sleep(time.Second) // it holds up the end of the service
					return nil
				})
				return errPlanted
			}},
		})
		require.EqualError(t, err, "service first: planted\n\tservice second: no database")
	})
}

func TestASlowDrainOfAServiceThatHasEndedIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		d := newDiary()
		time.AfterFunc(time.Second, func() { stop(errStop) })
		require.NoError(t, service.Run(ctx, []service.Service{{
			Run: func(ctx context.Context) error {
				<-service.Draining(ctx)
				time.Sleep(time.Second)
				return nil
			},
			Drain: func(ctx context.Context) error {
				err := async.Sleep(ctx, 10*time.Second)
				d.note(fmt.Sprint("drained: ", err))
				return err
			},
		}}))
		assert.Equal(t, []string{"drained: <nil>"}, d.read())
	})
}

func TestAServiceThatEndsBeforeItsTurnIsNotDrained(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		time.AfterFunc(time.Second, func() { stop(errStop) })
		d := newDiary()
		require.NoError(t, service.Run(ctx, []service.Service{
			{Name: "poller", Run: func(ctx context.Context) error {
				<-service.Draining(ctx)
				return http.ErrServerClosed // it was told
			}, Drain: func(context.Context) error {
				t.Error("it was drained")
				return nil
			}},
			d.worker("last", time.Second),
		}))
	})
}

func TestAStuckDrainIsCutAndTheOthersAreCancelledOnTime(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		var told []error
		begun := time.Now()
		time.AfterFunc(time.Second, func() { stop(errStop) })
		err := service.Run(ctx, []service.Service{
			{Name: "first", Run: func(ctx context.Context) error {
				<-ctx.Done()
				assert.Equal(t, 11*time.Second, time.Since(begun))
				told = append(told, context.Cause(ctx))
				return ctx.Err()
			}, Drain: func(context.Context) error {
				t.Error("its turn has not come")
				return nil
			}},
			{Name: "stuck", Run: await, Drain: await},
		}, service.Grace(10*time.Second))
		require.Len(t, told, 1)
		for _, err := range []error{err, told[0]} {
			require.ErrorIs(t, err, errStop, "the cause matches the first")
			var limit *async.TimeoutError
			require.ErrorAs(t, err, &limit)
			assert.Equal(t, 10*time.Second, limit.Limit)
		}
		assert.Equal(t, told[0], err)
		require.EqualError(t, err, "service: the drain was cut short: async: services: context deadline exceeded "+
			"(limit 10s, waited 10s); it was for: told to stop; still draining: service stuck for 10s (Run, Drain); not told before: service first")
	})
}

func TestAStragglerIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
		begun, release := time.Now(), make(chan struct{})
		time.AfterFunc(time.Second, func() { stop(errStop) })
		err := service.Run(ctx, []service.Service{
			{Name: "good", Run: await},
			{Name: "deaf", Run: func(context.Context) error {
				<-release
				return nil
			}},
		}, service.Grace(10*time.Second), service.GiveUp(3*time.Second))
		assert.Equal(t, 14*time.Second, time.Since(begun))
		require.ErrorIs(t, err, errStop)
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		assert.Equal(t, "service deaf", left.Left[0].Task)
		assert.Contains(t, left.Left[0].Stack, "TestAStragglerIsNamed")
		require.ErrorIs(t, left.Cause, errStop)
		assert.Equal(t, 1, strings.Count(err.Error(), "told to stop;"), "why is said once: %v", err)
		assert.Equal(t, []string{"services"}, asynctest.Live(ctx), "it stays on record")
		close(release)
		synctest.Wait()
		assert.Empty(t, asynctest.Live(ctx))
	})
}
