package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/service"
)

// A service that fails and is started again does not do so in silence, whatever way it fails.
func TestAFailureThatIsMendedIsLogged(t *testing.T) {
	for name, want := range map[string]string{"error": "level=WARN", "panic": "level=ERROR", "Goexit": "level=ERROR"} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			runs := func(t *testing.T, opts ...service.Option) {
				inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
					calls := 0
					time.AfterFunc(time.Hour, func() { stop(errStop) })
					require.NoError(t, service.Run(ctx, []service.Service{
						supervised(0, func(ctx context.Context) error {
							if calls++; calls < 4 {
								failures[name]()
								return errors.New("disk full")
							}
							return await(ctx)
						}),
					}, opts...))
				})
			}
			runs(t, service.Log(slog.New(slog.NewTextHandler(&b, nil))))
			text := b.String()
			require.Equal(t, 3, strings.Count(text, "service worker has failed, and is started again"), text)
			require.Equal(t, 3, strings.Count(text, want), text)
			require.Contains(t, text, "call=4")
			switch name {
			case "error":
				require.Contains(t, text, "disk full")
			case "panic":
				require.Contains(t, text, errPlanted.Error())
				require.Contains(t, text, "service_test.init")
			default:
				require.Contains(t, text, "Goexit")
			}

			b.Reset()
			before, out, flags := slog.Default(), log.Writer(), log.Flags()
			defer func() { slog.SetDefault(before); log.SetOutput(out); log.SetFlags(flags) }() // the first of them has changed the others
			slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
			runs(t)
			require.Equal(t, 3, strings.Count(b.String(), "is started again"), "it is the default")
			b.Reset()
			runs(t, service.Log(nil))
			require.Empty(t, b.String(), "it is quiet")
		})
	}
}

// A service whose Run has failed, while what it has started does not end, neither ends the others nor is started again: that
// is said once, with the names of what goes on. A panic is told by package async.
func TestAFailureThatWaitsForTasksIsLogged(t *testing.T) {
	for name, tc := range map[string]struct {
		run   func(ctx context.Context) error
		lasts time.Duration
		told  string
	}{
		"an error":                   {func(context.Context) error { return errPlanted }, time.Minute, `service worker has failed, and waits for what it has started`},
		"an error, and not for long": {func(context.Context) error { return errPlanted }, 9 * time.Second, ""},
		"nil":                        {func(context.Context) error { return nil }, time.Minute, ""},
		"told to stop":               {await, time.Minute, ""},
		"told to take no more":       {func(ctx context.Context) error { <-service.Draining(ctx); return http.ErrServerClosed }, time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				time.AfterFunc(time.Second, func() {
					if strings.HasPrefix(name, "told") {
						stop(errStop)
					}
				})
				_ = service.Run(ctx, []service.Service{{Name: "worker", Run: func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { time.Sleep(tc.lasts); return nil }, async.Name("deaf"))
					return tc.run(ctx)
				}}}, service.Grace(time.Hour), service.Delay(time.Minute), service.Log(slog.New(slog.NewTextHandler(&b, nil))))
			})
			if tc.told == "" {
				require.Empty(t, b.String())
				return
			}
			require.Equal(t, 1, strings.Count(b.String(), tc.told), b.String())
			require.Contains(t, b.String(), "level=WARN")
			require.Contains(t, b.String(), "err=planted")
			require.Contains(t, b.String(), "left=deaf")
		})
	}
}

// A panic whose service waits for what it has started is told at the root after 10 s, once, with the names of that, whether the
// service is started again or ends the others: nothing else is said before that has ended.
func TestAPanicThatWaitsForTasksIsTold(t *testing.T) {
	for name, options := range map[string][]async.TaskOption{"it is raised": nil, "it is started again": restarts(0)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				ctx, check := asynctest.Root(ctx)
				time.AfterFunc(time.Hour, func() { stop(errStop) })
				err := runOrPanic(ctx, []service.Service{{Name: "worker", Options: options, Run: func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil }, async.Name("deaf"))
					panic(errPlanted)
				}}}, service.Log(nil))
				if options == nil {
					require.ErrorIs(t, err, errPlanted)
				} else {
					require.NoError(t, err)
				}
				text := fmt.Sprint(check())
				require.Equal(t, 1, strings.Count(text, "this panic has waited 10s for the end of service worker, which waits for"), text)
				require.Contains(t, text, "\tdeaf (")
			})
		})
	}
}

// The turn of a service to stop comes before it is started again, and there is nothing to drain: that it had failed is no
// failure of the program, and is logged all the same.
func TestAFailureThatAStopKeepsFromBeingMendedIsLogged(t *testing.T) {
	for name, level := range map[string]string{"error": "level=WARN", "panic": "level=ERROR", "Goexit": "level=ERROR"} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			inBubble(t, func(t *testing.T, ctx context.Context, stop context.CancelCauseFunc) {
				time.AfterFunc(time.Minute, func() { stop(errStop) })
				require.NoError(t, service.Run(ctx, []service.Service{{Name: "worker", Options: restarts(0), Run: func(context.Context) error {
					failures[name]()
					return errPlanted
				}}}, service.Log(slog.New(slog.NewTextHandler(&b, nil)))))
			})
			require.Equal(t, 1, strings.Count(b.String(), "service worker has failed, and is to stop before it is started again"), b.String())
			require.Contains(t, b.String(), level)
			require.Contains(t, b.String(), map[string]string{"error": "planted", "panic": "planted", "Goexit": "Goexit"}[name])
		})
	}
}
