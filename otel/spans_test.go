package otelambit_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ambit-go/ambit/async"
	otelambit "github.com/ambit-go/ambit/otel"
)

// The table of the package documentation, row by row.
func TestOutcomes(t *testing.T) {
	type task = func(ctx context.Context) error
	wait := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	for name, row := range map[string]struct {
		task    task
		opts    []async.TaskOption
		watch   bool // under a Watch whose check fails
		cancel  bool // by somebody else
		status  codes.Code
		typ     string
		outcome string
		cause   string
	}{
		"ok":    {task: func(context.Context) error { return nil }, status: codes.Unset, outcome: "ok"},
		"error": {task: func(context.Context) error { return fmt.Errorf("a: %w", errPlanted) }, status: codes.Error, typ: "*errors.errorString", outcome: "error"},
		"error of its own scope": {task: func(ctx context.Context) error {
			_, err := async.Start(ctx, func(context.Context) error { return errPlanted }, async.Name("child")).Wait(ctx)
			return err
		}, status: codes.Error, typ: "*errors.errorString", outcome: "error"},
		"cancelled": {task: wait, cancel: true, status: codes.Unset, outcome: "cancelled", cause: "*errors.errorString"},
		"timeout":   {task: wait, opts: []async.TaskOption{async.Timeout(time.Second)}, status: codes.Error, typ: "timeout", outcome: "timeout", cause: "*async.TimeoutError"},
		"heartbeat": {task: wait, opts: []async.TaskOption{async.Heartbeat(time.Second)}, status: codes.Error, typ: "heartbeat", outcome: "heartbeat", cause: "*async.WatchdogError"},
		"watchdog":  {task: wait, watch: true, status: codes.Error, typ: "watchdog", outcome: "watchdog", cause: "*async.WatchdogError"},
		"panic":     {task: func(context.Context) error { panic(errPlanted) }, status: codes.Error, typ: "panic", outcome: "panic"},
		"goexit":    {task: func(context.Context) error { runtime.Goexit(); return nil }, status: codes.Error, typ: "goexit", outcome: "goexit"},
		"its own error, cancelled": {task: func(ctx context.Context) error { <-ctx.Done(); return errPlanted }, cancel: true,
			status: codes.Error, typ: "*errors.errorString", outcome: "error", cause: "*fmt.wrapError"},
	} {
		t.Run(name, func(t *testing.T) {
			observed(t, func(ctx context.Context, b *backend) {
				opts := append(row.opts, async.Name("of row"))
				var f *async.Future[struct{}]
				if row.watch {
					f = async.Watch(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, row.task(ctx) },
						async.Every(time.Second), func(context.Context) error { return errPlanted }, async.Name("of row"))
				} else {
					f = async.Start(ctx, row.task, opts...)
				}
				if row.cancel {
					synctest.Wait()
					cause := errPlanted
					if row.outcome == "error" {
						cause = fmt.Errorf("other: %w", context.DeadlineExceeded)
					}
					f.Cancel(cause)
				}
				_, err := f.Join(ctx)
				require.Equal(t, row.outcome == "ok", err == nil)
				s := b.span("of row")
				require.Equal(t, row.status, s.Status().Code)
				require.Empty(t, s.Status().Description, "a text")
				require.Equal(t, row.typ, attr(s.Attributes(), "error.type"))
				require.Equal(t, row.outcome, attr(s.Attributes(), "ambit.task.outcome"))
				require.Equal(t, row.cause, attr(s.Attributes(), "ambit.task.cause"))
				require.Equal(t, "future", attr(s.Attributes(), "ambit.task.kind"))
				require.NotEmpty(t, attr(s.Attributes(), "ambit.task.id"))
				if row.outcome == "panic" {
					require.Equal(t, "exception", s.Events()[0].Name)
					require.Contains(t, attr(s.Events()[0].Attributes, "exception.stacktrace"), "spans_test.go")
					require.Empty(t, attr(s.Events()[0].Attributes, "exception.message"))
				} else {
					require.Empty(t, s.Events())
				}
				require.EqualValues(t, 1, counts(b.metrics()["ambit.task.duration"], "ambit.task.outcome", row.outcome)["of row"])
			})
		})
	}
}

// A task that never ran has no span, and is counted. Others say how long they were queued.
func TestSkippedAndQueued(t *testing.T) {
	observed(t, func(ctx context.Context, b *backend) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { time.Sleep(2 * time.Second); return nil }, async.Name("first"))
			f := async.Start(ctx, func(context.Context) error { return nil }, async.Name("skipped"))
			async.Go(ctx, func(ctx context.Context) error { return nil }, async.Name("second"))
			synctest.Wait()
			f.Cancel(nil)
			return nil
		}, async.Limit(1), async.Name("limited"))
		require.False(t, b.has("skipped"))
		require.Equal(t, map[string]int64{"skipped": 1}, ints(b.metrics()["ambit.task.skipped"], "ambit.task.name"))
		require.Equal(t, "2", attr(b.span("second").Attributes(), "ambit.task.queue.duration"))
		require.Equal(t, map[string]float64{"second": 2, "first": 0, "limited": 0}, sums(b.metrics()["ambit.task.queue.duration"]))
	})
}

// Spans stand in one another as tasks do, and say when a handler has returned long before what it has started.
func TestParents(t *testing.T) {
	observed(t, func(ctx context.Context, b *backend) {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { // without a name: no span
				async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Second); return nil }, async.Name("leaf"))
				return nil
			})
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Second); return nil }, async.Name("child"))
				return nil
			}, async.Name("joins"))
			return nil
		}, async.Name("outer"))
		outer, joins, child, leaf := b.span("outer"), b.span("joins"), b.span("child"), b.span("leaf")
		require.Equal(t, outer.SpanContext().SpanID(), leaf.Parent().SpanID())
		require.Equal(t, outer.SpanContext().SpanID(), joins.Parent().SpanID())
		require.Equal(t, joins.SpanContext().SpanID(), child.Parent().SpanID())
		require.Len(t, b.spans.Ended(), 4)
		require.Equal(t, "returned", joins.Events()[0].Name)
		require.Equal(t, time.Second, joins.EndTime().Sub(joins.Events()[0].Time))
		require.False(t, joins.EndTime().Before(child.EndTime()))
	})
}

// A task without an end has no span, and a task that it starts begins a trace with a link to where it was started. Each run of a
// task with Restart has one, unless that has no end.
func TestNoSpanForWhatHasNoEnd(t *testing.T) {
	observed(t, func(ctx context.Context, b *backend) {
		inside := func(name string) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { return nil }, async.Name("in "+name))
				return nil
			}
		}
		failed := false
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, inside("daemon"), async.Daemon(), async.Name("daemon"))
			again := async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})
			async.Go(ctx, inside("run of a daemon"), async.Daemon(), async.Name("restarted daemon"), again)
			group := async.NewGroup(ctx, async.Name("group"))
			_ = inside("group")(group.Context())
			async.Go(ctx, func(context.Context) error {
				if !failed {
					failed = true
					return errPlanted
				}
				return nil
			}, async.Name("restarted"), again)
			time.Sleep(time.Minute)
			return group.Stop(ctx, nil)
		}, async.Name("outer"))
		outer := b.span("outer").SpanContext()
		for _, name := range []string{"in daemon", "in run of a daemon", "in group", "restarted"} {
			s := b.span(name)
			require.NotEqual(t, outer.TraceID(), s.SpanContext().TraceID(), name)
			require.False(t, s.Parent().IsValid(), name)
			require.Equal(t, outer, s.Links()[0].SpanContext, name)
		}
		for _, name := range []string{"daemon", "restarted daemon", "group"} {
			require.False(t, b.has(name), name)
		}
		require.Len(t, b.spans.Ended(), 6)
		require.Equal(t, map[string]int64{"restarted": 1}, ints(b.metrics()["ambit.task.restarts"], "ambit.task.name"))
	})
}

// A wait of a millisecond or more for what is no part of the waiter is a link to its span; for what is around it, or
// shorter, it is none.
func TestLinksOfWaits(t *testing.T) {
	observed(t, func(ctx context.Context, b *backend) {
		sleeps := func(d time.Duration) func(context.Context) error {
			return func(ctx context.Context) error { return async.Sleep(ctx, d) }
		}
		_ = async.Scope(ctx, func(ctx context.Context) error {
			long := async.Start(ctx, sleeps(time.Second), async.Name("long"))
			short := async.Start(ctx, sleeps(time.Millisecond/2), async.Name("short"))
			async.Go(ctx, func(ctx context.Context) error {
				own := async.Start(ctx, sleeps(2*time.Millisecond), async.Name("own"))
				for _, f := range []*async.Future[struct{}]{short, own, long} {
					if _, err := f.Wait(ctx); err != nil {
						return err
					}
				}
				return nil
			}, async.Name("waits"))
			return nil
		}, async.Name("outer"))
		links := b.span("waits").Links()
		require.Len(t, links, 1)
		require.Equal(t, b.span("long").SpanContext(), links[0].SpanContext)
		require.Equal(t, "await", attr(links[0].Attributes, "ambit.link"))
		require.Equal(t, "0.998", attr(links[0].Attributes, "ambit.wait.duration"))
	})
}

// A Filter is told what is usual. Texts adds texts.
func TestFilterAndTexts(t *testing.T) {
	filter := otelambit.Filter(func(e async.Event, usual bool) bool { return !usual || e.Task == "kept" })
	observed(t, func(ctx context.Context, b *backend) {
		f := async.Start(ctx, func(context.Context) error { panic(errPlanted) }, async.Name("kept"))
		_, _ = f.Wait(ctx)
		async.Start(ctx, func(context.Context) error { return nil }, async.Name("dropped"))
		synctest.Wait()
		require.False(t, b.has("dropped"))
		require.Contains(t, b.span("kept").Status().Description, "planted")
		require.Equal(t, "planted", attr(b.span("kept").Events()[0].Attributes, "exception.message"))
	}, filter, otelambit.Texts())
}

// Shutdown ends what is open, and there is nothing after it.
func TestShutdownEndsSpans(t *testing.T) {
	observed(t, func(ctx context.Context, b *backend) {
		async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Minute) }, async.Name("open"))
		synctest.Wait()
		require.NoError(t, b.Shutdown(ctx))
		require.Equal(t, "unfinished", attr(b.span("open").Attributes(), "ambit.task.outcome"))
		async.Go(ctx, func(ctx context.Context) error {
			require.False(t, trace.SpanFromContext(ctx).IsRecording())
			return nil
		}, async.Name("after"))
		require.NotContains(t, b.metrics(), "ambit.task.active")
	})
}
