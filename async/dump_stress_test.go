package async_test

import (
	"context"
	"encoding/json"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/picture"
)

// This file attacks looks: they meet whatever a tree can do.

// wellFormed fails t if pic contradicts itself.
func wellFormed(t *testing.T, pic *picture.Tree) {
	t.Helper()
	there := make(map[picture.ID]bool, len(pic.Nodes))
	scopes := map[int64]bool{pic.Root: true, 0: true}
	for i := range pic.Nodes {
		n := &pic.Nodes[i]
		require.False(t, there[n.ID], "node %v is there twice", n.ID)
		require.True(t, scopes[n.ID.Scope] || i == 0, "node %v stands before its owner", n.ID)
		require.NotEmpty(t, n.Name)
		require.NotEmpty(t, n.State)
		require.GreaterOrEqual(t, n.Started, int64(n.Live), n.Name)
		there[n.ID], scopes[n.Scope] = true, true
		if l := n.Limit; l != nil {
			require.LessOrEqual(t, len(l.Holders), 32)
			require.GreaterOrEqual(t, l.Queued, 0)
		}
	}
	whole := pic.Cut == (picture.Cut{})
	for i := range pic.Nodes {
		for _, w := range pic.Nodes[i].Waits {
			if whole && w.How == picture.WayAwait && !w.Gone {
				require.True(t, there[w.On], "%v waits for %v, which is not there", pic.Nodes[i].ID, w)
			}
		}
	}
	for _, p := range pic.Problems {
		require.True(t, there[p.Node], "the node of %v is not there", p)
	}
	grouped := 0
	for _, g := range pic.Groups {
		grouped += g.Count
	}
	require.Equal(t, pic.Cut.Grouped, grouped)
	require.Equal(t, pic.Live, grouped+len(pic.Nodes))
}

// lookers look at ctx until stop is called, each in its own way. It returns how often they have.
func lookers(t *testing.T, ctx context.Context) (stop func() int64) {
	var looks atomic.Int64
	var wg sync.WaitGroup
	done := make(chan struct{})
	for _, look := range []func(){
		func() { wellFormed(t, async.Snapshot(async.Of(ctx))) },
		func() { wellFormed(t, async.Snapshot(async.Of(ctx), async.AtMost(7), async.Texts())) },
		func() { wellFormed(t, async.Snapshot(async.Of(ctx), async.Stacks(3))) },
		func() {
			require.NoError(t, async.Dump(io.Discard, async.Of(ctx), async.AtMost(100)))
			data, err := json.Marshal(async.Snapshot(async.Of(ctx), async.AtMost(50)))
			require.True(t, err == nil && json.Valid(data))
		},
	} {
		wg.Go(func() {
			for { // once at least, also if what it looks at is over when it begins
				look()
				looks.Add(1)
				select {
				case <-done:
					return
				default:
					runtime.Gosched()
				}
			}
		})
	}
	return func() int64 {
		close(done)
		wg.Wait()
		return looks.Load()
	}
}

// A hundred thousand tasks queue, start, end, await each other, fail, panic and are cancelled, and four
// look at them all the while.
func TestLooksWhileAHundredThousandTasksComeAndGo(t *testing.T) {
	ctx := asynctest.Context(t)
	stop := lookers(t, ctx)
	const inRound = 2000
	var ended atomic.Int64
	for round := range fewer(100_000, 10_000) / inRound {
		err := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				crowd(ctx, round, inRound, &ended)
				return nil
			}, async.Limit(1+round%70), async.Name("crowd"), async.OnFailure(func(err error) error { return err }))
		})
		require.Error(t, err, "some have panicked or failed")
	}
	require.Positive(t, stop())
	require.Positive(t, ended.Load())
	pic := async.Snapshot(async.Of(ctx))
	require.Empty(t, pic.Rings)
	require.Equal(t, 1, pic.Live, "nothing is left but the group of the test: %v", pic.Nodes)
}

// crowd starts n tasks in the scope of ctx that do all that tasks can do.
func crowd(ctx context.Context, round, n int, ended *atomic.Int64) {
	var futures []*async.Future[int]
	for i := range n {
		before := futures[max(0, len(futures)-5):]
		work := func(ctx context.Context) (int, error) {
			defer ended.Add(1)
			switch {
			case i == n-1 && round%3 == 0:
				panic(errPlanted)
			case i == n-1:
				async.Fail(ctx, errPlanted)
			case i%50 == 7:
				return 0, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Microsecond) })
					async.OnExit(ctx, func(context.Context, error) error { return nil })
					return nil
				})
			case i%11 == 3 && len(before) > 0:
				_, _ = before[0].Await(ctx, time.Millisecond)
			case i%13 == 4:
				_ = async.AwaitAll(ctx, time.Microsecond, before...)
			}
			return i, nil
		}
		switch {
		case i%17 == 5:
			async.Go(ctx, func(ctx context.Context) error { _, err := work(ctx); return err }, async.Priority(i%3))
		default:
			futures = append(futures, async.Execute(ctx, work, async.Name("one of many")))
		}
		if i%19 == 9 {
			futures[len(futures)/2].Cancel(errPlanted)
		}
	}
}

// Hooks of all kinds may look, while what they are hooks of goes on or ends.
func TestALookInEveryHook(t *testing.T) {
	inBubble(t, func(t *testing.T, root context.Context) {
		var mu sync.Mutex
		seen := make(map[string]int)
		look := func(where string) {
			pic := async.Snapshot(async.Of(root), async.Stacks(2))
			wellFormed(t, pic)
			mu.Lock()
			defer mu.Unlock()
			seen[where]++
		}
		end := make(chan struct{})
		err := panicOrError(func() error {
			return async.Scope(root, func(ctx context.Context) error {
				async.OnExit(ctx, func(context.Context, error) error { look("exit"); return nil })
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil },
					async.OnAbort(func(context.Context, error) error { look("abort"); return nil }))
				f := async.Execute(ctx, func(ctx context.Context) (int, error) { time.Sleep(time.Hour); return 1, nil },
					async.OnDiscard(func(int) { look("discard") }))
				_, _ = f.Await(ctx, time.Second)
				async.Watch(ctx, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, nil },
					async.Every(time.Second), func(context.Context) error { look("check"); return errPlanted })
				async.Go(ctx, func(context.Context) error { <-end; plantedPanic(); return nil })
				async.Go(ctx, func(context.Context) error { look("run"); return errPlanted },
					async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 2}))
				return nil
			}, async.OnStall(time.Minute, func(*async.StragglerError) { look("stall"); close(end) }),
				async.OnPanic(func(*async.PanicError) error { look("panic"); return errPlanted }),
				async.OnFailure(func(err error) error { look("failure"); return nil }),
				async.Observe(async.ObserverFunc(func(async.Event) { look("observer") })))
		})
		require.Error(t, err)
		for _, where := range []string{"exit", "abort", "discard", "check", "run", "stall", "panic", "failure", "observer"} {
			require.Positive(t, seen[where], where)
		}
	})
}

// A task looks while it holds the only slot, and sees itself hold it.
func TestALookByTheHolderOfASlot(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(inner context.Context) error {
				synctest.Wait() // the other queues
				pic := async.Snapshot(async.Of(ctx), async.Stacks(5))
				wellFormed(t, pic)
				nodes := shown(pic)
				require.Equal(t, []picture.ID{nodes["holds"].ID}, nodes["full"].Limit.Holders)
				require.Equal(t, picture.StateQueued, nodes["queues"].State)
				require.Len(t, pic.Problems, 1)
				require.Contains(t, pic.Problems[0].Text, "TestALookByTheHolderOfASlot", "its own stack")
				own := async.Snapshot(async.Of(inner))
				require.Equal(t, "holds", own.Nodes[0].Name)
				require.Equal(t, nodes["holds"].ID, own.Nodes[0].ID)
				return nil
			}, async.Name("holds"))
			async.Go(ctx, func(context.Context) error { return nil }, async.Name("queues"))
			return nil
		}, async.Limit(1), async.Name("full")))
	})
}

// Two looks at once give one and the same number to a scope, and one and the same ID to a task.
func TestTwoFirstLooksAtOnce(t *testing.T) {
	for range fewer(200, 50) {
		ctx, check := asynctest.Root(context.Background())
		end := make(chan struct{})
		for range 20 {
			async.Detach(ctx, "one of many", func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { <-end; return nil })
					return nil
				})
			})
		}
		var pics [4]*picture.Tree
		var wg sync.WaitGroup
		for i := range pics {
			wg.Go(func() { pics[i] = async.Snapshot(async.Of(ctx), async.Stacks(1)) })
		}
		wg.Wait()
		scopes := make(map[picture.ID]int64)
		for _, pic := range pics {
			wellFormed(t, pic)
			require.Equal(t, int64(20), pic.Started)
			for _, n := range pic.Nodes {
				if known := scopes[n.ID]; n.Scope != 0 && known != 0 {
					require.Equal(t, known, n.Scope)
				}
				scopes[n.ID] = max(scopes[n.ID], n.Scope)
			}
		}
		close(end)
		require.NoError(t, check())
	}
}

// While a scope joins what a panic has cancelled, and until it raises that, it is seen; and whoever
// recovers looks at a tree without it.
func TestALookWhileAPanicIsRaised(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		held := make(chan struct{})
		raised := make(chan any)
		go func() {
			defer func() {
				r := recover()
				require.NotContains(t, shown(async.Snapshot(async.Of(ctx))), "panics")
				raised <- r
			}()
			_ = async.Scope(ctx, func(ctx context.Context) error {
				defer func() { wellFormed(t, async.Snapshot(async.Of(ctx))) }()
				async.Go(ctx, func(context.Context) error { <-held; return nil }, async.Name("holds up"))
				async.Go(ctx, func(context.Context) error { panic(errPlanted) })
				<-ctx.Done()
				return nil
			}, async.Name("panics"))
		}()
		synctest.Wait()
		pic := async.Snapshot(async.Of(ctx), async.Texts(), async.Stacks(1))
		wellFormed(t, pic)
		require.Equal(t, picture.StateJoining, shown(pic)["panics"].State)
		require.Equal(t, picture.ProblemStraggler, pic.Problems[0].Kind)
		require.Equal(t, shown(pic)["holds up"].ID, pic.Problems[0].Node)
		require.Contains(t, shown(pic)["holds up"].Told.Cause, errPlanted.Error())
		close(held)
		p, ok := (<-raised).(*async.PanicError)
		require.True(t, ok)
		require.Equal(t, any(errPlanted), p.Value)
	})
}

// A group whose owner ends, and has ended, is looked at through its own ctx.
func TestALookAtAGroupWhoseOwnerHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var group *async.Group
		held := make(chan struct{})
		release := sync.OnceFunc(func() { close(held) })
		defer release()
		ended := make(chan error)
		go func() {
			ended <- async.Scope(ctx, func(ctx context.Context) error {
				group = async.NewGroup(ctx, async.Name("requests"))
				return group.Go(func(context.Context) error { <-held; return nil }, async.Name("stays"))
			}, async.Name("owner"))
		}()
		synctest.Wait()
		for _, opts := range [][]async.LookOption{{async.Of(ctx)}, {async.Of(group.Context())}} {
			pic := async.Snapshot(opts...)
			wellFormed(t, pic)
			require.NotNil(t, shown(pic)["requests"].Told, "its owner ends")
			require.NotNil(t, shown(pic)["stays"].Told)
			require.Equal(t, picture.ProblemStraggler, pic.Problems[0].Kind)
		}
		release()
		require.NoError(t, <-ended)
		pic := async.Snapshot(async.Of(group.Context()))
		require.Len(t, pic.Nodes, 1)
		require.Equal(t, picture.StateDone, pic.Nodes[0].State)
		require.Zero(t, pic.Nodes[0].Live)
		require.NotContains(t, shown(async.Snapshot(async.Of(ctx))), "requests")
		require.Contains(t, dumped(t, async.Of(group.Context())), "requests")
	})
}

// A look at a task alone knows that it was told to stop with what is around it.
func TestALookInsideWhatWasTold(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		held := make(chan struct{})
		release := sync.OnceFunc(func() { close(held) })
		defer release()
		var inner context.Context
		outer := async.Start(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				inner = ctx
				async.Go(ctx, func(context.Context) error { <-held; return nil }, async.Name("deep"))
				<-held
				return nil
			})
			<-held
			return nil
		})
		synctest.Wait()
		require.Nil(t, async.Snapshot(async.Of(inner)).Nodes[1].Told)
		outer.Cancel(errPlanted)
		synctest.Wait()
		pic := async.Snapshot(async.Of(inner), async.Texts())
		wellFormed(t, pic)
		require.NotNil(t, pic.Nodes[0].Told)
		require.Equal(t, errPlanted.Error(), pic.Nodes[1].Told.Cause)
		release()
	})
}

// The ctx of whatever has ended may be asked about, by those who have kept it.
func TestALookAtWhatHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		kept := make(map[string]context.Context)
		keep := func(name string, ctx context.Context) { kept[name] = ctx }
		var mu sync.Mutex
		require.Error(t, async.Scope(ctx, func(ctx context.Context) error {
			keep("scope", ctx)
			leaf := async.Start(ctx, func(ctx context.Context) error { keep("leaf", ctx); return nil })
			_, _ = leaf.Wait(ctx)
			task := async.Start(ctx, func(ctx context.Context) error {
				keep("task", ctx)
				async.Go(ctx, func(context.Context) error { return nil })
				return nil
			})
			_, _ = task.Wait(ctx)
			async.OnExit(ctx, func(ctx context.Context, _ error) error { keep("hook", ctx); return nil })
			derived, cancel := context.WithCancel(ctx)
			cancel()
			keep("derived", derived)
			keep("values", context.WithoutCancel(ctx))
			return errPlanted
		}, async.Observe(async.ObserverFunc(func(e async.Event) { mu.Lock(); keep("event", e.Ctx); mu.Unlock() }))))
		for name, old := range kept {
			pic := async.Snapshot(async.Of(old), async.Stacks(1), async.Texts())
			wellFormed(t, pic)
			require.Len(t, pic.Nodes, 1, name)
			require.Zero(t, pic.Nodes[0].Live, name)
			require.NotEmpty(t, dumped(t, async.Of(old)), name)
		}
		require.Len(t, kept, 7)
	})
}

// A look at what Shutdown stops, and at a scope that leaves its tasks behind.
func TestALookWhileTheRootIsShutDown(t *testing.T) {
	ctx, check := asynctest.Root(context.Background())
	end := make(chan struct{})
	for range 50 {
		async.Detach(ctx, "detached", func(ctx context.Context) error { <-ctx.Done(); return nil })
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { <-end; return nil }, async.Name("stays"))
			return errPlanted
		}, async.DetachAfter(time.Nanosecond))
	}
	stop := lookers(t, ctx)
	pic := async.Snapshot(async.Of(ctx))
	wellFormed(t, pic)
	left := slices.DeleteFunc(pic.Nodes, func(n picture.Node) bool { return n.Name != "stays" })
	require.Len(t, left, 50, "each is seen once")
	time.AfterFunc(time.Millisecond, func() { close(end) })
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_ = async.Shutdown(short) // waits, then cancels
	require.Positive(t, stop())
	_ = check()
}

// A writer that fails, blocks or panics harms nobody but the Dump that writes to it.
func TestADumpToABrokenWriter(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		async.Go(ctx, func(context.Context) error { <-end; return nil }, async.Name("goes on"))
		synctest.Wait()
		require.ErrorIs(t, async.Dump(writerFunc(func([]byte) (int, error) { return 0, errPlanted }), async.Of(ctx)), errPlanted)
		require.Panics(t, func() {
			_ = async.Dump(writerFunc(func([]byte) (int, error) { panic(errPlanted) }), async.Of(ctx))
		})
		blocked := make(chan struct{})
		go func() {
			_ = async.Dump(writerFunc(func(b []byte) (int, error) { <-blocked; return len(b), nil }), async.Of(ctx))
		}()
		synctest.Wait()
		require.True(t, strings.Contains(dumped(t, async.Of(ctx)), "goes on"))
		require.NoError(t, async.Scope(ctx, func(context.Context) error { return nil }), "no lock is held")
		close(blocked)
		close(end)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
