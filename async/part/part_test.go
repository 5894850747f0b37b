package part_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/part"
	"github.com/ambit-go/ambit/async/picture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A pool is a part of two places.
type pool struct{ view part.View }

func (p *pool) Look() part.View { return p.view }

// A badPool panics when it is looked at, and cannot be compared.
type badPool []int

func (badPool) Look() part.View { panic("broken") }

func TestAPartIsShownUntilItIsRemovedOrItsScopeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := asynctest.Context(t)
		parts := func() []picture.Part { return async.Snapshot(async.Of(outer)).Parts }
		view := part.View{Kind: "pool", Name: "connections", Places: 2, Running: 1, Queued: 3, State: "slow"}
		require.NoError(t, async.Scope(outer, func(ctx context.Context) error {
			remove := part.Add(ctx, &pool{view})
			part.Add(ctx, badPool(nil))
			require.Len(t, parts(), 2)
			require.Equal(t, "it panics when it is looked at", parts()[0].State)
			got := parts()[1]
			require.NotZero(t, got.Scope)
			got.Scope = 0
			require.Equal(t, picture.Part{Kind: "pool", Name: "connections", Places: 2, Active: 1, Queued: 3, State: "slow"}, got)
			remove()
			remove()
			require.Len(t, parts(), 1)
			return nil
		}))
		require.Empty(t, parts())
		part.Add(context.Background(), &pool{view})()
		require.Panics(t, func() { part.Add(outer, nil) })
	})
}

func TestAWaitIsShownWhileItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := asynctest.Context(t)
		go1, go2 := make(chan struct{}), make(chan struct{})
		lock := &pool{part.View{Kind: "lock", Name: "orders"}}
		defer part.Add(outer, lock)()
		async.Go(outer, func(ctx context.Context) error {
			var w part.Wait
			w.Begin(ctx, lock, "orders/42")
			<-go1
			w.End()
			w.End()
			w.Begin(ctx, nil, "a process")
			defer w.End()
			<-go2
			return nil
		}, async.Name("waits"))
		marks := make(map[uint64]bool)
		wait := func() picture.Wait {
			synctest.Wait()
			for _, n := range async.Snapshot(async.Of(outer)).Nodes {
				if n.Name == "waits" {
					w := n.Waits[0]
					marks[w.Mark], w.Mark = true, 0
					return w
				}
			}
			return picture.Wait{}
		}
		require.Equal(t, picture.Wait{How: picture.WayPart, Part: 1, Text: "orders/42"}, wait())
		close(go1)
		require.Equal(t, picture.Wait{How: picture.WayPart, Text: "a process"}, wait())
		wait()
		require.Len(t, marks, 2, "the same wait has the same mark, another one has another")
		close(go2)
		var w part.Wait
		w.Begin(context.Background(), nil, "nobody's")
		w.End()
	})
}

// A full part whose only task waits for one that queues in it is a ring.
type counter struct {
	pool
	queue chan func()
}

func (c *counter) Part() part.Part            { return &c.pool }
func (c *counter) Execute(task func()) error  { c.queue <- task; return nil }
func (c *counter) TryExecute(run func()) bool { c.queue <- run; return true }

func TestARingThroughAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := asynctest.Context(t)
		c := &counter{pool{part.View{Kind: "till", Places: 1}}, make(chan func(), 2)}
		var second *async.Future[struct{}]
		known := make(chan struct{})
		first := async.Start(ctx, func(ctx context.Context) error { <-known; _, err := second.Wait(ctx); return err }, async.On(c), async.Name("first"))
		second = async.Start(ctx, func(context.Context) error { return nil }, async.On(c), async.Name("second"))
		close(known)
		run := <-c.queue
		go run()
		synctest.Wait()
		require.Empty(t, async.Snapshot(async.Of(ctx)).Rings, "the till says that it has a place")
		c.view.Running, c.view.Queued = 1, 1
		pic := async.Snapshot(async.Of(ctx))
		require.Len(t, pic.Rings, 1)
		require.Equal(t, picture.WayPart, pic.Rings[0].Waits[1].How)
		c.view.Places = 2
		require.Empty(t, async.Snapshot(async.Of(ctx)).Rings)
		second.Cancel(nil)
		_, _ = first.Wait(ctx)
	})
}
