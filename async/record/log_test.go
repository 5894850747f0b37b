package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
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

// A task that fails by itself is a failure, also where its own scope was cancelled for that, or it itself by somebody else.
func TestAFailureIsNotLoggedAsCancelled(t *testing.T) {
	boom, enough := errors.New("boom"), errors.New("enough")
	for name, c := range map[string]struct {
		task   func(ctx context.Context) error
		cancel bool
	}{
		"with a scope of its own": {task: func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
			return boom
		}},
		"of what it has started": {task: func(ctx context.Context) error {
			_, err := async.Start(ctx, func(context.Context) error { return boom }).Wait(ctx)
			return err
		}},
		"after a cancellation": {func(ctx context.Context) error { <-ctx.Done(); return boom }, true},
	} {
		t.Run(name, func(t *testing.T) {
			lines := logged(t, slog.LevelDebug, func(ctx context.Context) {
				f := async.Start(ctx, c.task, async.Name("worker"))
				time.Sleep(time.Second)
				if c.cancel {
					f.Cancel(enough)
				}
				_, _ = f.Join(ctx)
			})
			line := lines[slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "task=worker ") })]
			require.Contains(t, line, "level=WARN ")
			require.Contains(t, line, "outcome=error ")
			require.Equal(t, c.cancel, strings.Contains(line, " cause=enough"), line)
			require.Equal(t, c.cancel, strings.Contains(line, " cause="), line)
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
