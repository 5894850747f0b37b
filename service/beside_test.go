package service_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/service"
)

// A task fails because Run has failed: the line that tells of the one tells of the other.
func TestAFailureBesideTheOneThatIsMendedIsLogged(t *testing.T) {
	boom := errors.New("boom")
	for name, fail := range map[string]func() error{"an error": func() error { return boom }, "a panic": func() error { panic(boom) }} {
		for when, at := range map[string]time.Duration{"and is started again": 2 * time.Hour, "and is to stop": time.Minute} {
			t.Run(name+" "+when, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
					var log bytes.Buffer
					runs := 0
					time.AfterFunc(at, func() { stop(errStop) })
					require.NoError(t, runOrPanic(ctx, []service.Service{{Name: "worker", Options: restarts(0), Run: func(ctx context.Context) error {
						if runs++; runs > 1 {
							return await(ctx)
						}
						async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errPlanted })
						return fail()
					}}}, service.Log(slog.New(slog.NewTextHandler(&log, nil)))))
					assert.Contains(t, log.String(), when)
					assert.Contains(t, log.String(), "boom")
					assert.Contains(t, log.String(), "planted")
				})
			})
		}
	}
}

// A panic that is not retried is the cause that the tasks of Run see, and no abort hook is called for it.
func TestTheCauseOfAPanicThatIsNotRetried(t *testing.T) {
	for when, startup := range map[string]time.Duration{"in the drain": 0, "before it is ready": time.Hour} {
		for name, options := range map[string][]async.TaskOption{"with Restart": restarts(0), "without": nil} {
			t.Run(when+" "+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
					var cause error
					quit, runs := make(chan struct{}), 0
					hook := async.OnAbort(func(context.Context, error) error { t.Error("an abort hook was called"); return nil })
					s := service.Service{Name: "worker", Options: append(options, hook), Startup: startup}
					s.Drain = func(context.Context) error { close(quit); return nil }
					s.Run = func(ctx context.Context) error {
						runs++
						async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); cause = context.Cause(ctx); return nil })
						if startup == 0 {
							<-quit
						}
						panic(errPlanted)
					}
					time.AfterFunc(time.Minute, func() { stop(errStop) })
					require.ErrorIs(t, runOrPanic(ctx, []service.Service{s}, service.Log(nil)), errPlanted)
					assert.ErrorAs(t, cause, new(*async.PanicError))
					assert.ErrorIs(t, cause, errPlanted)
					assert.Equal(t, 1, runs)
				})
			})
		}
	}
}
