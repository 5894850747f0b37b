package async_test

import (
	"bytes"
	"context"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// labelsHere returns the labels of its goroutine, as the profile of goroutines shows them; "" for none.
//
//go:noinline
func labelsHere(t *testing.T) string { return labelsOf(t, "async_test.labelsHere") }

// labelsOf returns the labels of the goroutine that runs in function.
func labelsOf(t *testing.T, function string) string {
	var b strings.Builder
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&b, 1))
	for block := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(block, function) {
			_, labels, _ := strings.Cut(block, "# labels: ")
			labels, _, _ = strings.Cut(labels, "\n")
			return labels
		}
	}
	require.Fail(t, "no goroutine runs in "+function)
	return ""
}

// Handlers and bodies run under the names of tasks, without numbers, beside the labels that the ctx has. A goroutine
// that a handler starts inherits them.
func TestProfileLabelsHandlers(t *testing.T) {
	ctx := pprof.WithLabels(asynctest.Context(t), pprof.Labels("user", "own"))
	see := func(want string) func(context.Context) error {
		return func(context.Context) error { require.Equal(t, want, labelsHere(t)); return nil }
	}
	require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
		require.Empty(t, labelsHere(t), "nothing is set for the scope itself")
		for i, start := range []func() *async.Future[struct{}]{
			func() *async.Future[struct{}] {
				return async.Start(ctx, see(`{"async.scope":"crawl #", "async.task":"fetch-#", "user":"own"}`), async.Name("fetch-17"))
			},
			func() *async.Future[struct{}] {
				return async.Start(ctx, func(ctx context.Context) error {
					seen := make(chan string)
					go func() { seen <- labelsHere(t) }()
					require.Equal(t, `{"async.scope":"crawl #", "async.task":"starts", "user":"own"}`, <-seen)
					_, err := async.Start(ctx, see(`{"async.scope":"starts", "async.task":"inner", "user":"own"}`), async.Name("inner")).Wait(ctx)
					return err
				}, async.Name("starts"))
			},
		} {
			_, err := start().Wait(ctx)
			require.NoError(t, err, i)
		}
		return async.ForEach(ctx, slices.Values([]int{1, 2}), func(context.Context, int) error {
			require.Contains(t, labelsHere(t), `"async.scope":"each"`)
			return nil
		}, async.Name("each"), async.Limit(1))
	}, async.Profile(), async.Name("crawl 9f8a7c12")))
}

// When a body has returned, by whatever, its goroutine has the labels that it had.
func TestProfileRestoresLabelsOfTheCaller(t *testing.T) {
	for name, end := range map[string]func(){"return": func() {}, "panic": func() { panic(errPlanted) }} {
		t.Run(name, func(t *testing.T) {
			pprof.Do(asynctest.Context(t), pprof.Labels("user", "own"), func(ctx context.Context) {
				_ = async.Scope(ctx, func(ctx context.Context) error {
					func() {
						defer func() { _ = recover() }()
						_ = async.Scope(ctx, func(context.Context) error {
							require.Equal(t, `{"async.scope":"outer", "async.task":"body", "user":"own"}`, labelsHere(t))
							end()
							return nil
						}, async.Name("body"))
					}()
					require.Equal(t, `{"user":"own"}`, labelsHere(t))
					return nil
				}, async.Profile(), async.Name("outer"))
			})
		})
	}
}

// With two, one inside the other, the goroutine goes back to where it was, too.
func TestProfileInAProfile(t *testing.T) {
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			before := labelsHere(t)
			require.Contains(t, before, `"async.task":"inner"`)
			err := async.Scope(ctx, func(context.Context) error {
				require.Contains(t, labelsHere(t), `"async.task":"body"`)
				return nil
			}, async.Name("body"))
			require.Equal(t, before, labelsHere(t))
			return err
		}, async.Profile(), async.Name("inner"))
	}, async.Profile(), async.Name("outer")))
	require.Empty(t, labelsHere(t))
}

// A goroutine of an executor has no label of the task that it has run.
func TestProfileRestoresLabelsOfAnExecutor(t *testing.T) {
	tasks, after := make(chan func()), make(chan string)
	go func() {
		for f := range tasks {
			f()
			after <- labelsHere(t)
		}
	}()
	defer close(tasks)
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		for _, end := range []func(){func() {}, func() { panic(errPlanted) }} {
			f := async.Start(ctx, func(context.Context) error { end(); return nil }, async.On(channel(tasks)))
			require.Empty(t, <-after)
			_, _ = f.Wait(ctx)
		}
		return nil
	}, async.Profile()))
}

type channel chan func()

func (c channel) Execute(task func()) error { c <- task; return nil }

// A trace has a region of each handler, a task of each scope with a name, and the cause with which a handler was
// told to stop.
func TestProfileInATrace(t *testing.T) {
	if trace.IsEnabled() {
		t.Skip("the tests are traced")
	}
	taken := func(opts ...async.ScopeOption) string {
		var b bytes.Buffer
		require.NoError(t, trace.Start(&b))
		_ = async.Scope(asynctest.Context(t), func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				f := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, async.Name("region-5"), async.Timeout(-1))
				_, _ = f.Join(ctx)
				exits := async.Start(ctx, func(context.Context) error { runtime.Goexit(); return nil }, async.Name("exits"))
				_, _ = exits.Join(ctx)
				return nil
			}, async.Name("traced"))
		}, opts...)
		trace.Stop()
		return b.String()
	}
	with := taken(async.Profile())
	for _, text := range []string{"region-#", "exits", "traced", "async.stopped", "*async.TimeoutError"} {
		require.Contains(t, with, text)
	}
	require.NotContains(t, taken(), "region")
}

// BenchmarkProfile is a task under Profile, beside one without.
func BenchmarkProfile(b *testing.B) {
	for name, opts := range map[string][]async.ScopeOption{"off": nil, "on": {async.Profile()}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			_ = async.Scope(context.Background(), func(ctx context.Context) error {
				for b.Loop() {
					_, _ = async.Start(ctx, func(context.Context) error { return nil }, async.Name("task")).Wait(ctx)
				}
				return nil
			}, opts...)
		})
	}
}
