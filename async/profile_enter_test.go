package async_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/picture"
)

// labelGiver is an observer that gives each task a label and a value.
func labelGiver() *giver {
	return &giver{instead: func(ctx context.Context, e async.Event) context.Context {
		return pprof.WithLabels(context.WithValue(ctx, giverKey{}, givenIn(ctx)+"/"+e.Task), pprof.Labels("given", e.Task))
	}}
}

// Each run of a task with Restart has the labels of the task and what another observer gives, as the first had.
func TestProfileBesideEnterUnderRestart(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errPlanted }, "panic": func() error { panic(errPlanted) }, "goexit": func() error { runtime.Goexit(); return nil },
	} {
		for order, options := range map[string][]async.ScopeOption{
			"first": {async.Profile(), async.Observe(labelGiver())}, "last": {async.Observe(labelGiver()), async.Profile()},
		} {
			t.Run(fmt.Sprint(name, ", profile ", order), func(t *testing.T) {
				ctx := pprof.WithLabels(asynctest.Context(t), pprof.Labels("user", "own"))
				var labels, values, children []string
				require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						labels, values = append(labels, labelsHere(t)), append(values, givenIn(ctx))
						_, err := async.Start(ctx, func(ctx context.Context) error {
							children = append(children, labelsHere(t)+givenIn(ctx))
							return nil
						}, async.Name("child")).Wait(ctx)
						if assert.NoError(t, err); len(labels) < 3 {
							return fail()
						}
						return nil
					}, async.Name("worker"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond)}))
					return nil
				}, append(options, async.Name("all"))...))
				want := func(task string) string {
					return fmt.Sprintf(`{"async.scope":"%s", "async.task":"%s", "given":"%s", "user":"own"}`,
						map[string]string{"worker": "all", "child": "worker"}[task], task, task)
				}
				require.Equal(t, slices.Repeat([]string{want("worker")}, 3), labels, "a run is no scope of its own")
				require.Equal(t, slices.Repeat([]string{"/worker"}, 3), values, "and not in the one before")
				require.Equal(t, slices.Repeat([]string{want("child") + "/worker/child"}, 3), children)
			})
		}
	}
}

// A goroutine that a body has borrowed gets its labels back, also where another observer gives labels.
func TestProfileRestoresLabelsBesideEnter(t *testing.T) {
	ctx := pprof.WithLabels(asynctest.Context(t), pprof.Labels("user", "own"))
	require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
		_, err := async.Start(ctx, func(ctx context.Context) error {
			before := labelsHere(t)
			_ = async.Scope(ctx, func(context.Context) error {
				require.Contains(t, labelsHere(t), `"given":"inner"`)
				return nil
			}, async.Name("inner"))
			require.Equal(t, before, labelsHere(t))
			return nil
		}, async.Name("task")).Wait(ctx)
		return err
	}, async.Profile(), async.Observe(labelGiver())))
}

// A run has the name of its task, and is named if that is; what an unnamed one starts is not in a scope of the name of a function.
func TestARunIsNamedAsItsTaskIs(t *testing.T) {
	for name, options := range map[string][]async.TaskOption{"worker": {async.Name("worker")}, "all": nil} {
		ctx := asynctest.Context(t)
		var told []async.Event
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			restart := async.Restart(async.RestartPolicy{Interval: async.Every(time.Millisecond)})
			async.Go(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(context.Context) error {
					require.Equal(t, fmt.Sprintf(`{"async.scope":"%s", "async.task":"child"}`, name), labelsHere(t))
					return nil
				}, async.Name("child"))
			}, append(options, restart)...)
			return nil
		}, async.Name("all"), async.Profile(), async.Observe(async.ObserverFunc(func(e async.Event) {
			if e.Of == picture.KindRun {
				told = append(told, e)
			}
		}))))
		require.Len(t, told, 2)
		require.Equal(t, options != nil, told[0].Named)
	}
}
