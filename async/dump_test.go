package async_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/picture"
)

// shown returns the nodes of a picture by their names; of one name the outermost.
func shown(pic *picture.Tree) map[string]*picture.Node {
	nodes := make(map[string]*picture.Node)
	for i := range pic.Nodes {
		if n := &pic.Nodes[i]; nodes[n.Name] == nil {
			nodes[n.Name] = n
		}
	}
	return nodes
}

func dumped(t *testing.T, opts ...async.LookOption) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, async.Dump(&b, opts...))
	return b.String()
}

// Every kind of wait of a task is seen, and what it is for.
func TestASnapshotShowsWhatATaskWaitsFor(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		target := async.Start(ctx, func(context.Context) error { <-end; return nil }, async.Name("target"))
		does := func(name string, f func(ctx context.Context) error) {
			async.Go(ctx, func(ctx context.Context) error { _ = f(ctx); return nil }, async.Name(name))
		}
		does("await", func(ctx context.Context) error { _, err := target.Await(ctx, time.Hour); return err })
		does("wait", func(ctx context.Context) error { _, err := target.Wait(ctx); return err })
		does("join", func(ctx context.Context) error { _, err := target.Join(ctx); return err })
		does("all", func(ctx context.Context) error { return async.AwaitAll(ctx, 0, target)[0].Err })
		does("limited", func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			_, err := target.Wait(ctx)
			return err
		})
		does("sleep", func(ctx context.Context) error { return async.Sleep(ctx, time.Minute) })
		group := async.NewGroup(ctx, async.Name("group of one"))
		require.NoError(t, group.Go(func(context.Context) error { <-end; return nil }))
		does("waits for the group", func(ctx context.Context) error { return group.Wait(ctx) })
		does("body", func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { <-end; return nil })
				return nil
			}, async.Name("joins"))
		})
		async.Go(ctx, func(context.Context) error { <-end; return nil }, async.Name("channel"))
		synctest.Wait()

		pic := async.Snapshot(async.Of(ctx))
		nodes := shown(pic)
		for _, name := range []string{"await", "wait", "join", "all", "limited"} {
			n := nodes[name]
			require.Len(t, n.Waits, 1, name)
			require.Equal(t, picture.WayAwait, n.Waits[0].How, name)
			require.Equal(t, nodes["target"].ID, n.Waits[0].On, name)
			require.Equal(t, "target", n.Waits[0].Name, name)
			require.Equal(t, picture.StateRunning, n.State, name)
		}
		require.Equal(t, time.Hour, nodes["await"].Waits[0].Left)
		require.Zero(t, nodes["wait"].Waits[0].Left)
		require.True(t, nodes["limited"].Waits[0].Own)
		require.True(t, nodes["join"].Waits[0].Own)
		require.Equal(t, 5, nodes["target"].Waiters)
		require.True(t, nodes["target"].Sought)
		require.Equal(t, picture.WaySleep, nodes["sleep"].Waits[0].How)
		require.Equal(t, time.Minute, nodes["sleep"].Waits[0].Left)
		require.Equal(t, nodes["group of one"].ID, nodes["waits for the group"].Waits[0].On)
		require.Equal(t, picture.WayJoin, nodes["joins"].Waits[0].How)
		require.Equal(t, picture.StateJoining, nodes["joins"].State)
		require.Empty(t, nodes["channel"].Waits)
		require.Empty(t, pic.Rings)
		require.Empty(t, pic.Problems)
		close(end)
	})
}

// Places are those of the user's functions, by whatever they were started.
func TestASnapshotShowsWhereATaskStarts(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		wait := func(context.Context) error { <-end; return nil }
		value := func(context.Context) (int, error) { <-end; return 0, nil }
		_, _, line, _ := runtime.Caller(0)
		async.Go(ctx, wait, async.Name("Go"))
		async.Start(ctx, wait, async.Name("Start"))
		async.Execute(ctx, value, async.Name("Execute"))
		async.Detach(ctx, "Detach", wait)
		async.Go(ctx, wait, async.Name("Restart"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
		async.Watch(ctx, value, async.Every(time.Hour), func(context.Context) error { return nil }, async.Name("Watch"))
		async.Repeat(ctx, async.Every(time.Hour), wait, async.Name("Repeat"))
		async.Poll(ctx, async.Every(time.Hour), func(context.Context) (int, bool, error) { <-end; return 0, true, nil }, async.Name("Poll"))
		async.ForkJoin(ctx, []int{1}, func(context.Context, int) (int, error) { <-end; return 0, nil }, async.Name("ForkJoin"))
		async.Go(ctx, keeper{end}.wait, async.Name("method"))
		async.Go(ctx, generic[int](end), async.Name("generic"))
		synctest.Wait()
		nodes := shown(async.Snapshot(async.Of(ctx)))
		for name, behind := range map[string]int{
			"Go": -2, "Start": -2, "Execute": -1, "Restart": -2, "Watch": -1, "Repeat": -2, "Poll": 8, "ForkJoin": 9,
		} {
			require.Equal(t, fmt.Sprintf("async/dump_test.go:%d", line+behind), nodes[name].Place, name)
		}
		require.Contains(t, nodes["generic"].Place, "async/dump_test.go:")
		for name, n := range nodes {
			require.NotContains(t, n.Place, "autogenerated", name)
			if n.Place != "" {
				require.Contains(t, n.Place, "async/dump_test.go:", name)
			}
		}
		close(end)
	})
}

type keeper struct{ end chan struct{} }

func (k keeper) wait(context.Context) error { <-k.end; return nil }

func generic[T any](end chan struct{}) func(context.Context) error {
	return func(context.Context) error { <-end; return nil }
}

// Two tasks of one name are told apart, for as long as they live, and no ID is used again.
func TestIDsStay(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		start := func(n int) {
			for range n {
				async.Go(ctx, func(context.Context) error { <-end; return nil }, async.Name("same"))
			}
		}
		ids := func() map[picture.ID]bool {
			all := make(map[picture.ID]bool)
			pic := async.Snapshot(async.Of(ctx))
			last := int64(0)
			for _, n := range pic.Nodes[1:] {
				require.False(t, all[n.ID])
				require.Greater(t, n.ID.Ordinal, last, "the oldest first")
				all[n.ID], last = true, n.ID.Ordinal
			}
			return all
		}
		start(600)
		first := ids()
		require.Len(t, first, 600)
		require.Equal(t, first, ids())
		close(end)
		synctest.Wait()
		require.Empty(t, ids())
		end = make(chan struct{})
		start(10)
		for id := range ids() {
			require.False(t, first[id])
		}
		close(end)
	})
}

func TestASnapshotShowsWhatIsWrong(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		stubborn := async.Start(ctx, func(context.Context) error { <-end; return nil }, async.Name("stubborn"))
		stubborn.Cancel(errors.New("secret"))
		async.Go(ctx, func(context.Context) error { return errors.New("secret") }, async.Name("fails"),
			async.Restart(async.RestartPolicy{Interval: async.Every(time.Minute), Attempts: 10, Within: time.Hour}))
		failed := async.Start(ctx, func(ctx context.Context) error {
			async.Start(ctx, func(context.Context) error { return errPlanted })
			<-end
			return nil
		}, async.Name("forgets"))
		time.Sleep(90 * time.Second)
		pic := async.Snapshot(async.Of(ctx), async.Stacks(1))
		nodes := shown(pic)
		var kinds []picture.ProblemKind
		for _, p := range pic.Problems {
			kinds = append(kinds, p.Kind)
		}
		require.Equal(t, []picture.ProblemKind{picture.ProblemStraggler, picture.ProblemRestarts, picture.ProblemUnclaimed}, kinds)
		require.Equal(t, nodes["stubborn"].ID, pic.Problems[0].Node)
		require.Contains(t, pic.Problems[0].Text, "TestASnapshotShowsWhatIsWrong", "its stack")
		require.Equal(t, &picture.Told{Type: "*errors.errorString"}, nodes["stubborn"].Told)
		require.Equal(t, &picture.Restart{Failures: 2, Last: "*errors.errorString"}, nodes["fails"].Restart)
		require.Equal(t, picture.StatePausing, nodes["fails"].State)
		require.Equal(t, 1, nodes["forgets"].Unclaimed)
		require.False(t, nodes["forgets"].Sought)
		data, err := json.Marshal(pic)
		require.NoError(t, err)
		require.NotContains(t, string(data), "secret", "texts are for those who ask for them")
		require.Contains(t, dumped(t, async.Of(ctx)), "STRAGGLER #"+nodes["stubborn"].ID.String()+" stubborn: told to stop by *errors.errorString: secret")
		require.Contains(t, dumped(t, async.Of(ctx)), "2 failures, the last *errors.errorString: secret")
		require.Equal(t, "secret", shown(async.Snapshot(async.Of(ctx), async.Texts()))["stubborn"].Told.Cause)
		close(end)
		_, err = failed.Join(ctx)
		require.ErrorIs(t, err, errPlanted)
	})
}

// A task that DetachAfter has left is there once.
func TestWhatIsLeftBehindIsSeenOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		root := rootContext(t)
		err := async.Scope(root, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { <-end; return nil }, async.Name("left behind"))
			return errPlanted
		}, async.DetachAfter(time.Second), async.Name("impatient"))
		require.ErrorIs(t, err, errPlanted)
		text := dumped(t, async.Of(root))
		require.Equal(t, 1, strings.Count(text, "├ ")+strings.Count(text, "└ "), text)
		nodes := shown(async.Snapshot(async.Of(root)))
		require.Equal(t, picture.KindLeft, nodes["impatient"].Kind)
		require.Equal(t, "async.ErrScopeEnded", strings.ReplaceAll(nodes["left behind"].Told.Type, "*errors.errorString", "async.ErrScopeEnded"))
		close(end)
	})
}

// A million tasks are shown in part, and all are counted.
func TestAWideScopeIsShownInPart(t *testing.T) {
	n := fewer(100_000, 10_000)
	end := make(chan struct{})
	require.NoError(t, async.Scope(context.Background(), func(ctx context.Context) error {
		for i := range n {
			async.Go(ctx, func(ctx context.Context) error { <-end; return nil }, async.Name("task "+string(rune('a'+i%3))+" 17"))
		}
		pic := async.Snapshot(async.Of(ctx), async.AtMost(300))
		require.LessOrEqual(t, len(pic.Nodes), 300)
		require.Equal(t, n+1, pic.Live)
		counted := len(pic.Nodes)
		for _, g := range pic.Groups {
			require.Contains(t, []string{"task a #", "task b #", "task c #"}, g.Name)
			counted += g.Count
		}
		require.Equal(t, n+1, counted)
		require.Equal(t, n+1-len(pic.Nodes), pic.Cut.Grouped)
		require.Equal(t, int64(n), pic.Nodes[0].Started)
		require.Equal(t, int64(1), pic.Nodes[1].ID.Ordinal, "the oldest")
		require.Equal(t, int64(n), pic.Nodes[len(pic.Nodes)-1].ID.Ordinal, "the newest")
		text := dumped(t, async.Of(ctx))
		require.LessOrEqual(t, strings.Count(text, "\n"), picture.MaxLines)
		close(end)
		return nil
	}))
}

// A deep tree is shown by no recursion, and its JSON is flat.
func TestADeepTree(t *testing.T) {
	const depth = 10_000
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		var descend func(ctx context.Context, n int) error
		descend = func(ctx context.Context, n int) error {
			if n == 0 {
				<-end
				return nil
			}
			async.Go(ctx, func(ctx context.Context) error { return descend(ctx, n-1) })
			return nil
		}
		async.Go(ctx, func(ctx context.Context) error { return descend(ctx, depth) })
		synctest.Wait()
		pic := async.Snapshot(async.Of(ctx), async.AtMost(2*depth))
		require.Equal(t, depth+2, pic.Live)
		require.Len(t, pic.Nodes, depth+2)
		text := dumped(t, async.Of(ctx))
		require.LessOrEqual(t, strings.Count(text, "\n"), picture.MaxLines)
		data, err := json.Marshal(pic)
		require.NoError(t, err)
		var any map[string]any
		require.NoError(t, json.Unmarshal(data, &any))
		close(end)
	})
}

// Looking is safe while tasks start, end, await, fail, panic and are cancelled. Each task that is
// awaited is in the picture, or is said to be gone.
func TestLooksWhileTheTreeChanges(t *testing.T) {
	ctx := asynctest.Context(t)
	stop := make(chan struct{})
	var lookers sync.WaitGroup
	look := func(opts ...async.LookOption) {
		pic := async.Snapshot(append(opts, async.Of(ctx))...)
		there := make(map[picture.ID]bool)
		for _, n := range pic.Nodes {
			require.False(t, there[n.ID], "a node is there once")
			there[n.ID] = true
			require.NotEmpty(t, n.Name)
			require.NotEmpty(t, n.State)
		}
		for _, n := range pic.Nodes {
			for _, w := range n.Waits {
				if w.How == picture.WayAwait && !w.Gone && pic.Cut == (picture.Cut{}) {
					require.True(t, there[w.On], "%v of %v", w, n.ID)
				}
			}
		}
		require.Empty(t, pic.Rings)
	}
	for range 2 {
		lookers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					look()
				}
			}
		})
	}
	rounds := fewer(500, 20)
	for i := range rounds {
		_ = panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				var futures []*async.Future[int]
				var first *async.Future[int]
				for n := range 40 {
					known := first // the variable is written while tasks run
					futures = append(futures, async.Execute(ctx, func(ctx context.Context) (int, error) {
						switch {
						case n%10 == 9 && i%3 == 0:
							panic(errPlanted)
						case n%10 == 8:
							return 0, errPlanted
						case n%5 == 3:
							return 0, async.Sleep(ctx, time.Microsecond)
						case known != nil && n%3 == 1:
							return known.Wait(ctx)
						}
						return n, nil
					}))
					if n == 0 {
						first = futures[0]
					}
				}
				futures[3].Cancel(nil)
				for _, f := range futures {
					_, _ = f.Await(ctx, time.Millisecond)
				}
				if i%7 == 6 {
					return errPlanted
				}
				return nil
			}, async.Limit(1+i%20), async.Name("round"))
		})
	}
	close(stop)
	lookers.Wait()
}

// Whoever looks may do so from anywhere in the tree.
func TestADumpInATaskAHookAndAnObserver(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var mu sync.Mutex
		dumps := 0
		dump := func(ctx context.Context) {
			text := dumped(t, async.Of(ctx))
			mu.Lock()
			defer mu.Unlock()
			require.Contains(t, text, "async tree of")
			dumps++
		}
		require.Error(t, async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(ctx context.Context, _ error) error { dump(ctx); return nil })
			async.Go(ctx, func(ctx context.Context) error { dump(ctx); <-ctx.Done(); return nil },
				async.OnAbort(func(ctx context.Context, _ error) error { dump(ctx); return nil }))
			time.Sleep(time.Second)
			return errPlanted
		}, async.Observe(async.ObserverFunc(func(async.Event) { dump(ctx) }))))
		require.GreaterOrEqual(t, dumps, 5)
	})
}

// brokenText is an error that cannot be shown as it is.
type brokenText string

func (e brokenText) Error() string {
	if e == "panics" {
		panic("no text")
	}
	return string(e)
}

func TestTextsOfErrorsAreGuarded(t *testing.T) {
	for name, cause := range map[string]error{
		"panics":   brokenText("panics"),
		"huge":     brokenText(strings.Repeat("x", 1<<20)),
		"no text":  brokenText("\xff\xfe"),
		"lines":    brokenText("first\nsecond"),
		"controls": brokenText("\x1b[31mred\x07"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				end := make(chan struct{})
				f := async.Start(ctx, func(context.Context) error { <-end; return nil }, async.Name("\x1b[31mname\n"))
				f.Cancel(cause)
				text := dumped(t, async.Of(ctx))
				require.Less(t, len(text), 4000)
				require.NotContains(t, text, "second")
				require.NotContains(t, text, "\x1b")
				require.True(t, strings.Contains(text, "told to stop"))
				data, err := json.Marshal(async.Snapshot(async.Of(ctx), async.Texts()))
				require.NoError(t, err)
				require.True(t, json.Valid(data))
				close(end)
			})
		})
	}
}

// The picture of the process shows nothing of a test with a root of its own.
func TestRootsAreSeparate(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		async.Go(ctx, func(context.Context) error { <-end; return nil }, async.Name("only here"))
		require.NotContains(t, shown(async.Snapshot()), "only here")
		require.Contains(t, shown(async.Snapshot(async.Of(ctx))), "only here")
		close(end)
	})
}

func TestMisuseOfLookOptions(t *testing.T) {
	require.Panics(t, func() { async.AtMost(0) })
	require.Panics(t, func() { async.Stacks(0) })
	require.Panics(t, func() { async.Snapshot(nil) })
}
