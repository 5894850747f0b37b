package service_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// A badHandler is a slog handler that does not do its work.
type badHandler struct {
	slog.Handler
	handle func()
}

func (badHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h badHandler) Handle(context.Context, slog.Record) error { h.handle(); return nil }

var badHandlers = map[string]func(){
	"it blocks":       func() { time.Sleep(time.Hour) },
	"it panics":       func() { panic("log") },
	"it calls Goexit": runtime.Goexit,
}

// A slog handler that blocks or panics holds up no stop, and fails nobody.
func TestAHandlerOfALogHoldsUpNoStop(t *testing.T) {
	for name, handle := range badHandlers {
		for when, run := range map[string]func(context.Context) error{
			"at a stop": func(context.Context) error { return errPlanted },
			"of what waits for tasks": func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { time.Sleep(40 * time.Second); return nil })
				return errPlanted
			},
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
					begun, d := time.Now(), newDiary()
					time.AfterFunc(time.Minute, func() { stop(errStop) })
					require.NoError(t, runOrPanic(ctx, []service.Service{
						d.worker("other", time.Second), {Name: "worker", Options: restarts(0), Run: run},
					}, service.Grace(10*time.Second), service.Log(slog.New(badHandler{slog.DiscardHandler, handle}))))
					assert.LessOrEqual(t, time.Since(begun), time.Minute+2*time.Second)
					assert.Equal(t, []string{"other runs", "other drains", "other ends"}, d.read())
					time.Sleep(3 * time.Hour) // goroutines that log come home
				})
			})
		}
	}
}

// A slog handler that blocks when a service is about to be run again does not keep it from a stop.
func TestAHandlerOfALogHoldsUpNoStopOfWhatIsRunAgain(t *testing.T) {
	for name, handle := range badHandlers {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				begun, runs := time.Now(), 0
				time.AfterFunc(10*time.Minute, func() { stop(errStop) })
				require.NoError(t, runOrPanic(ctx, []service.Service{supervised(0, func(ctx context.Context) error {
					if runs++; runs > 1 {
						return await(ctx)
					}
					return errPlanted
				})}, service.Grace(10*time.Second), service.Log(slog.New(badHandler{slog.DiscardHandler, handle}))))
				assert.Equal(t, 2, runs)
				assert.LessOrEqual(t, time.Since(begun), 10*time.Minute+time.Second)
				time.Sleep(3 * time.Hour)
			})
		})
	}
}

// inline runs a task on the goroutine that hands it over.
type inline struct{}

func (inline) Execute(task func()) error   { task(); return nil }
func (inline) TryExecute(task func()) bool { task(); return true }

// A Run that calls Goexit on the goroutine that has handed it to its executor has failed, and the others are drained.
func TestARunThatCallsGoexitOnTheGoroutineThatStartsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		options []async.TaskOption
		runs    int
	}{
		"with Restart": {restarts(0), 2}, "without": {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				begun, runs, d := time.Now(), 0, newDiary()
				time.AfterFunc(2*time.Hour, func() { stop(errStop) })
				err := runOrPanic(ctx, []service.Service{d.worker("other", time.Second), {
					Name: "worker", Options: append(tc.options, async.On(inline{})), Run: func(ctx context.Context) error {
						if runs++; runs > 1 {
							return await(ctx)
						}
						synctest.Wait() // the other runs: one that has not begun when a stop comes is not run at all
						runtime.Goexit()
						return errors.New("not reached")
					},
				}}, service.Log(nil))
				assert.Equal(t, tc.runs, runs)
				assert.Equal(t, []string{"other runs", "other drains", "other ends"}, d.read())
				if runs == 1 {
					require.EqualError(t, err, "service worker: "+async.ErrGoexit.Error())
					require.ErrorIs(t, err, async.ErrGoexit)
				} else {
					require.NoError(t, err)
					assert.LessOrEqual(t, time.Since(begun), 2*time.Hour+time.Second)
				}
			})
		})
	}
}
