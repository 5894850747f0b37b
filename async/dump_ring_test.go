package async_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/part"
	"github.com/ambit-go/ambit/async/picture"
)

// ringOf returns the names of the tasks of the only ring in pic, "" if there is none.
func ringOf(t *testing.T, pic *picture.Tree) string {
	t.Helper()
	if len(pic.Rings) == 0 {
		return ""
	}
	require.Len(t, pic.Rings, 1)
	names := make(map[picture.ID]string)
	for _, n := range pic.Nodes {
		names[n.ID] = n.Name
	}
	var steps []string
	for i, w := range pic.Rings[0].Waits {
		next := pic.Rings[0].Waits[(i+1)%len(pic.Rings[0].Waits)]
		require.Equal(t, w.On, next.By, "one leads to the next")
		steps = append(steps, names[w.By]+" "+string(w.How))
	}
	return strings.Join(steps, ", ")
}

func TestARingThroughAChoice(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		fail, known := make(chan struct{}), make(chan struct{})
		var choice *async.Future[int]
		choice = async.Any(ctx, func(ctx context.Context) (int, error) {
			<-known
			return choice.Await(ctx, time.Hour) // not refused: the other may decide
		}, func(context.Context) (int, error) { <-fail; return 0, errPlanted })
		close(known)
		async.Go(ctx, func(ctx context.Context) error { _, _ = choice.Wait(ctx); return nil }, async.Name("onlooker"))
		synctest.Wait()
		require.Empty(t, async.Snapshot(async.Of(ctx)).Rings, "the other contender may decide")
		close(fail)
		synctest.Wait()
		pic := async.Snapshot(async.Of(ctx))
		require.Len(t, pic.Rings, 1)
		require.Len(t, pic.Rings[0].Waits, 2)
		require.Equal(t, picture.WayChoice, pic.Rings[0].Waits[0].How)
		require.Equal(t, picture.WayAwait, pic.Rings[0].Waits[1].How)
		require.Equal(t, time.Hour, pic.Rings[0].Breaks)
		require.Contains(t, pic.Rings[0].HoldsUp, shown(pic)["onlooker"].ID)
		require.Contains(t, dumped(t, async.Of(ctx)), "RING of 2 waits; a limit ends one of them in 1h0m0s")
		time.Sleep(2 * time.Hour)
		require.Empty(t, async.Snapshot(async.Of(ctx)).Rings, "the limit has passed")
		choice.Cancel(nil)
	})
}

// The last contender that could decide a Quorum of two is one of two that both wait for it.
func TestARingOfAllContendersThatAreLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		known, free := make(chan struct{}), make(chan struct{})
		var choice *async.Future[int]
		waits := func(ctx context.Context) (int, error) { <-known; return choice.Wait(ctx) }
		choice = async.Any(ctx, waits, waits, func(context.Context) (int, error) { <-free; return 0, errPlanted })
		close(known)
		synctest.Wait()
		require.Empty(t, async.Snapshot(async.Of(ctx)).Rings)
		close(free)
		synctest.Wait()
		pic := async.Snapshot(async.Of(ctx))
		require.Len(t, pic.Rings, 1)
		require.Equal(t, 3, pic.Rings[0].Size)
		choice.Cancel(nil)
	})
}

// foreign starts a task that holds the only slot and waits for one that queues, with the ctx of another.
func foreign(outer context.Context, limit time.Duration) {
	async.Go(outer, func(context.Context) error {
		return async.Scope(outer, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error {
				queued := async.Start(ctx, func(context.Context) error { return nil }, async.Name("queued"))
				_, _ = queued.Await(outer, limit)
				return nil
			}, async.Name("holder"))
			return nil
		}, async.Limit(1), async.Name("limited"))
	})
}

// A holder of the last slot that waits with the context of another lends nothing. Who waits is read
// from the context, so only the stack of the holder proves the ring.
func TestARingThroughALimit(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		foreign(ctx, time.Hour)
		synctest.Wait()
		pic := async.Snapshot(async.Of(ctx))
		require.Empty(t, pic.Rings, "it is not proved")
		require.Len(t, pic.Problems, 1)
		require.Equal(t, picture.ProblemFull, pic.Problems[0].Kind)
		limit := shown(pic)["limited"].Limit
		require.Equal(t, &picture.Limit{Slots: 1, Held: 1, Queued: 1, Holders: []picture.ID{shown(pic)["holder"].ID}}, limit)
		require.Equal(t, picture.WayLimit, shown(pic)["queued"].Waits[0].How)

		pic = async.Snapshot(async.Of(ctx), async.Stacks(4))
		require.Equal(t, "holder await, queued limit", ringOf(t, pic))
		require.Equal(t, time.Hour, pic.Rings[0].Breaks)
		require.Contains(t, pic.Problems[0].Text, "holder waits with the context of")
		require.Contains(t, pic.Problems[0].Text, "async_test.TestARingThroughALimit")
		time.Sleep(2 * time.Hour)
		require.Empty(t, async.Snapshot(async.Of(ctx), async.Stacks(4)).Rings)
	})
}

// A holder that waits for a channel, and one that waits with its own context, are in no ring.
func TestWaitsThatCanEndAreNoRing(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		async.Go(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { <-end; return nil }, async.Name("channel"))
				async.Go(ctx, func(ctx context.Context) error {
					_, err := async.Start(ctx, func(context.Context) error { return nil }).Wait(ctx)
					return err
				}, async.Name("queued"))
				return nil
			}, async.Limit(1))
		})
		promise, resolve := async.NewPromise[int](ctx)
		async.Go(ctx, func(ctx context.Context) error { _, err := promise.Wait(ctx); return err }, async.Name("waits for a promise"))
		synctest.Wait()
		pic := async.Snapshot(async.Of(ctx), async.Stacks(8))
		require.Empty(t, pic.Rings)
		require.Equal(t, picture.ProblemFull, pic.Problems[0].Kind)
		resolve.Resolve(1)
		close(end)
	})
}

// A holder gives its slot back when its handler has returned, before it waits for what that has started.
func TestAHolderWhoseTaskQueuesIsInNoRing(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		defer close(end)
		async.Go(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { return nil })
					<-end
					return nil
				})
				return nil
			}, async.Limit(1))
		})
		synctest.Wait()
		require.Empty(t, async.Snapshot(async.Of(ctx), async.Stacks(8)).Rings)
	})
}

// A ring that leads through the joins of three scopes holds up whatever is around it.
func TestARingThroughAChoiceAndJoins(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		fail, known := make(chan struct{}), make(chan struct{})
		var choice *async.Future[int]
		choice = async.Any(ctx, func(ctx context.Context) (int, error) {
			return 0, async.Scope(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						<-known
						_, err := choice.Wait(ctx)
						return err
					}, async.Name("deep"))
					return nil
				}, async.Name("inner"))
			}, async.Name("outer"))
		}, func(context.Context) (int, error) { <-fail; return 0, errPlanted })
		close(known)
		synctest.Wait()
		close(fail)
		synctest.Wait()
		pic := async.Snapshot(async.Of(ctx))
		require.Len(t, pic.Rings, 1)
		require.Len(t, pic.Rings[0].Waits, 5)
		require.Contains(t, ringOf(t, pic), "outer join, inner join, deep await")
		require.Contains(t, pic.Rings[0].HoldsUp, pic.Nodes[0].ID)
		choice.Cancel(nil)
	})
}

// A hook is called while a look asks for parts: after the tree was seen, and before rings are looked for.
type hook func()

func (h hook) Look() part.View {
	h()
	return part.View{Kind: "hook"}
}

// The contender that can decide is started when the others were seen already.
func TestNoRingWithoutAContenderThatStartsMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		known, started, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var choice *async.Future[int]
		choice = async.Hedge(ctx, time.Minute, func(ctx context.Context) (int, error) {
			<-known
			return choice.Wait(ctx)
		}, func(context.Context) (int, error) {
			close(started)
			<-end
			return 1, nil
		})
		close(known)
		synctest.Wait()
		part.Add(ctx, hook(sync.OnceFunc(func() { time.Sleep(time.Minute); <-started })))
		require.Empty(t, async.Snapshot(async.Of(ctx)).Rings)
		close(end)
		got, err := choice.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, got)
	})
}

// Choices are opened, start, and are looked at, all at a time.
func TestLooksAtChoicesThatOpen(t *testing.T) {
	ctx := asynctest.Context(t)
	stop := lookers(t, ctx)
	require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
		f, p := async.NewPromise[int](ctx)
		async.Go(ctx, func(ctx context.Context) error { _, err := f.Wait(ctx); return err })
		one := func(context.Context) (int, error) { return 1, nil }
		for range 2000 {
			if _, err := async.Any(ctx, one, one).Wait(ctx); err != nil {
				return err
			}
		}
		p.Resolve(1)
		return nil
	}))
	stop()
}
