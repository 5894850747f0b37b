package service_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
			before := slog.Default()
			defer slog.SetDefault(before)
			slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
			runs(t)
			require.Equal(t, 3, strings.Count(b.String(), "is started again"), "it is the default")
			b.Reset()
			runs(t, service.Log(nil))
			require.Empty(t, b.String(), "it is quiet")
		})
	}
}
