package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logged runs body in an observed scope and returns the lines, without their times.
func logged(t *testing.T, level slog.Level, body func(ctx context.Context)) (lines []string) {
	var b bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		l := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
			Level: level,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		}))
		defer func() { _ = recover() }()
		root, _ := asynctest.Root(t.Context())
		_ = async.Scope(root, func(ctx context.Context) error { body(ctx); return nil },
			async.Observe(record.Log(l)), async.OnFailure(func(error) error { return nil }),
			async.OnPanic(func(*async.PanicError) error { return nil }))
	})
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

func TestLevels(t *testing.T) {
	boom := errors.New("boom")
	for outcome, c := range map[string]struct {
		level string
		task  func(ctx context.Context) error
		opts  []async.TaskOption
	}{
		"ok":       {"DEBUG", func(context.Context) error { return nil }, nil},
		"error":    {"WARN", func(context.Context) error { return boom }, nil},
		"panic":    {"ERROR", func(context.Context) error { panic(boom) }, nil},
		"goexit":   {"ERROR", func(context.Context) error { runtime.Goexit(); return nil }, nil},
		"timeout":  {"WARN", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, []async.TaskOption{async.Timeout(time.Second)}},
		"watchdog": {"WARN", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, []async.TaskOption{async.Heartbeat(time.Second)}},
		"cancelled": {"DEBUG", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			[]async.TaskOption{async.Daemon()}},
	} {
		t.Run(outcome, func(t *testing.T) {
			lines := logged(t, slog.LevelDebug, func(ctx context.Context) {
				async.Go(ctx, c.task, append(c.opts, async.Name("worker"))...)
			})
			found := 0
			for _, line := range lines {
				if strings.Contains(line, "task=worker") && strings.Contains(line, `msg="task ended"`) {
					found++
					require.Contains(t, line, "level="+c.level+" ")
					require.Contains(t, line, "outcome="+outcome)
					require.Contains(t, line, " id=")
					require.Contains(t, line, " owner=")
				}
			}
			require.Equal(t, 1, found, "%v", lines)
		})
	}
}

func TestAPanicIsWrittenWhenItHappens(t *testing.T) {
	lines := logged(t, slog.LevelInfo, func(ctx context.Context) {
		async.Go(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil })
			panic("boom")
		}, async.Name("worker"))
	})
	require.GreaterOrEqual(t, len(lines), 1)
	require.Contains(t, strings.Join(lines, "\n"), `level=ERROR msg="task panicked" task=worker`)
}

// Ten lines a second of one name; then the number of the others.
func TestALogIsBounded(t *testing.T) {
	lines := logged(t, slog.LevelWarn, func(ctx context.Context) {
		for i := range 300 {
			async.Go(ctx, func(context.Context) error { return fmt.Errorf("failure %d", i) }, async.Name("same"))
		}
		time.Sleep(2 * time.Second)
		async.Go(ctx, func(context.Context) error { return errors.New("one more") }, async.Name("same"))
	})
	require.Len(t, lines, 11)
	require.Contains(t, lines[10], "more=290")
}

func TestNamesAreBounded(t *testing.T) {
	lines := logged(t, slog.LevelWarn, func(ctx context.Context) {
		for i := range 2000 {
			async.Go(ctx, func(context.Context) error { return errors.New("boom") }, async.Name(fmt.Sprint("task ", i)))
		}
	})
	require.Len(t, lines, 512+10)
}
