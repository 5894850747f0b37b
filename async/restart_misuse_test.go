package async_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestRestartSaysWhereItDoesNotApply(t *testing.T) {
	ctx := asynctest.Context(t)
	probe := func(context.Context) (int, bool, error) { return 0, true, nil }
	for text, f := range map[string]func(){
		"async: a poll with Restart: it calls its probe again and again anyway; see Tolerate and Again": func() {
			async.Poll(ctx, async.Every(time.Second), probe, everySecond)
		},
		"async: Watch with Restart: call Watch in the handler of a task with Restart, and await it there": func() {
			async.Watch(ctx, answer, async.Every(time.Second), nothing, everySecond)
		},
		"async: NewPromise with Restart: nothing runs for a promise that could be started again": func() {
			async.NewPromise[int](ctx, everySecond)
		},
		"async: Restart with a nil interval: use Every, Backoff or a function of your own": func() { async.Restart(async.RestartPolicy{}) },
		"async: Restart with a negative Healthy: a task that fails at once would never be given up": func() {
			async.Restart(async.RestartPolicy{Interval: async.Every(1), Healthy: -1})
		},
		"async: Restart with negative Attempts: for no limit set Within to -1": func() {
			async.Restart(async.RestartPolicy{Interval: async.Every(1), Attempts: -1})
		},
	} {
		require.PanicsWithValue(t, text, f)
	}
}

// TestWhatGoesWrongInTheIntervalEndsTheTask, with the failure it was asked about.
func TestWhatGoesWrongInTheIntervalEndsTheTask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, runs := failing(100, nil)
		_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: func(int) time.Duration { panic("interval") }})).Join(ctx)
		var p *async.PanicError
		require.ErrorAs(t, err, &p)
		require.Equal(t, "interval", p.Value)
		require.ErrorIs(t, everythingIn(err), errRun)
		require.EqualValues(t, 1, runs.Load())
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		f, _ := failing(100, nil)
		_, err := async.Start(ctx, f, async.Restart(async.RestartPolicy{Interval: func(int) time.Duration { runtime.Goexit(); return 0 }})).Join(ctx)
		require.ErrorIs(t, err, async.ErrGoexit)
		require.ErrorIs(t, err, errRun)
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		value := panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				f, _ := failing(100, nil)
				async.Go(ctx, f, async.Restart(async.RestartPolicy{Interval: func(int) time.Duration { panic("interval") }}))
				return nil
			})
		})
		require.IsType(t, new(async.PanicError), value)
	})
}

type rudeError struct{}

func (rudeError) Error() string { panic("Error") }
func (rudeError) Unwrap() error { panic("Unwrap") }
func (rudeError) As(any) bool   { panic("As") }
func (rudeError) Is(error) bool { panic("Is") }

type listError struct{ list []int }

func (listError) Error() string { return "not comparable" }

// TestAnErrorWhoseMethodsPanicIsAFailureAsAnyOther.
func TestAnErrorWhoseMethodsPanicIsAFailureAsAnyOther(t *testing.T) {
	for name, err := range map[string]error{"rude": rudeError{}, "not comparable": listError{[]int{1}}, "joined": errors.Join(errRun, rudeError{})} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				runs := 0
				_, got := async.Start(ctx, func(context.Context) error { runs++; return err }, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)})).Join(ctx)
				require.Equal(t, 5, runs)
				var e *async.RestartError
				require.True(t, errors.As(got, &e))
				require.Contains(t, e.Error(), "given up after 5 failures")
			})
		})
	}
}
