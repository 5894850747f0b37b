package async_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/picture"
)

// Two tasks of one name are told apart, their owner is known, and their context has the values of the
// ctx that they were started with: all that a span needs.
func TestEventsNameTheTaskAndItsOwner(t *testing.T) {
	type key struct{}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var mu sync.Mutex
		events := make(map[async.EventKind]map[picture.ID]async.Event)
		end := make(chan struct{})
		observer := async.ObserverFunc(func(e async.Event) {
			mu.Lock()
			defer mu.Unlock()
			if events[e.Kind] == nil {
				events[e.Kind] = make(map[picture.ID]async.Event)
			}
			require.NotContains(t, events[e.Kind], e.ID, "each is told once")
			events[e.Kind][e.ID] = e
		})
		var shownIDs map[picture.ID]string
		require.Error(t, async.Scope(ctx, func(ctx context.Context) error {
			for i := range 2 {
				ctx := context.WithValue(ctx, key{}, i)
				async.Go(ctx, func(ctx context.Context) error {
					async.Start(ctx, func(context.Context) error { <-end; return nil }, async.Name("child"))
					<-end
					return nil
				}, async.Name("same"))
			}
			synctest.Wait()
			shownIDs = make(map[picture.ID]string)
			for _, n := range async.Snapshot(async.Of(ctx)).Nodes[1:] {
				shownIDs[n.ID] = n.Name
			}
			close(end)
			async.Go(ctx, func(context.Context) error { return errPlanted }, async.Name("fails"))
			return nil
		}, async.Name("outer"), async.Observe(observer)))

		values := make(map[any]int)
		for id, name := range shownIDs {
			start := events[async.EventStart][id]
			require.Contains(t, start.Task, name)
			require.Equal(t, start.Owner, events[async.EventEnd][id].Owner)
			values[start.Ctx.Value(key{})]++
			if name == "child" {
				require.Equal(t, "same", shownIDs[start.Owner])
			}
		}
		require.Equal(t, map[any]int{0: 2, 1: 2}, values)
		require.Len(t, events[async.EventEnd], 5)
	})
}

// A panic is told with the task that has panicked.
func TestThePanicEventNamesTheTask(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var mu sync.Mutex
		ids := make(map[async.EventKind][]picture.ID)
		observer := async.ObserverFunc(func(e async.Event) {
			if e.Task == "panics" || e.Task == "with a child" {
				mu.Lock()
				defer mu.Unlock()
				ids[e.Kind] = append(ids[e.Kind], e.ID)
			}
		})
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { panic(errPlanted) }, async.Name("panics"))
			synctest.Wait()
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { return nil })
				panic(errPlanted)
			}, async.Name("with a child"))
			return nil
		}, async.Observe(observer), async.OnPanic(func(*async.PanicError) error { return nil })))
		require.Len(t, ids[async.EventPanic], 2)
		require.Equal(t, ids[async.EventStart], ids[async.EventPanic])
	})
}
