package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/picture"
)

// A giver gives each task its name, behind those of the tasks around it.
type giver struct {
	mu      sync.Mutex
	told    []async.Event
	ended   []string // what the tasks that ended had been given, in the order of their ends
	instead func(ctx context.Context, e async.Event) context.Context
}

type giverKey struct{}

func givenIn(ctx context.Context) string {
	s, _ := ctx.Value(giverKey{}).(string)
	return s
}

func (g *giver) Enter(ctx context.Context, e async.Event) context.Context {
	if g.instead != nil {
		return g.instead(ctx, e)
	}
	return context.WithValue(ctx, giverKey{}, givenIn(ctx)+"/"+e.Task)
}

func (g *giver) Observe(e async.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told = append(g.told, e)
	if e.Kind == async.EventEnd {
		g.ended = append(g.ended, givenIn(e.Ctx))
	}
}

// Values reach the handler, what it starts, its hooks, and the event of its end, which comes after that of
// the last thing it has started.
func TestEnterGivesTasksValues(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := new(giver)
		var mu sync.Mutex
		var seen []string
		see := func(ctx context.Context) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, givenIn(ctx))
		}
		err := async.Scope(ctx, func(ctx context.Context) error {
			see(ctx) // not told of itself
			async.Go(ctx, func(ctx context.Context) error {
				see(ctx)
				async.OnExit(ctx, func(ctx context.Context, _ error) error { see(ctx); return nil })
				async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Second); see(ctx); return nil }, async.Name("leaf"))
				limited, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				_, err := async.Start(limited, func(ctx context.Context) error { see(ctx); return nil }, async.Name("derived")).Wait(ctx)
				return err
			}, async.Name("go"))
			time.Sleep(time.Hour)
			_ = async.Scope(ctx, func(ctx context.Context) error { see(ctx); return nil }, async.Name("scope"))
			return async.ForEach(ctx, slices.Values([]int{1, 2}), func(ctx context.Context, _ int) error { see(ctx); return nil },
				async.Limit(1), async.Name("each"))
		}, async.Observe(g))
		require.NoError(t, err)
		items := g.ended[len(g.ended)-2]
		require.Regexp(t, `^/each/each/.*func`, items, "and not in one another")
		require.Equal(t, []string{
			"", "/go", "/go/derived", "/go/leaf", "/go/exit hook of go", "/scope", items, items,
		}, seen)
		require.Equal(t, []string{
			"/go/derived", "/go/leaf", "/go/exit hook of go", "/go", "/scope", items, items, "/each",
		}, g.ended)
	})
}

// An end is told after the last child, also of a handler that panics or calls Goexit, and with what was given.
func TestEnterIsLeftAtTheEnd(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("planted") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				g := new(giver)
				_ = async.Scope(ctx, func(ctx context.Context) error {
					f := async.Start(ctx, func(ctx context.Context) error {
						async.Start(ctx, func(context.Context) error { time.Sleep(time.Second); return nil }, async.Name("child"))
						end()
						return nil
					}, async.Name("ends"))
					_, err := f.Wait(ctx)
					require.Error(t, err)
					return nil
				}, async.Observe(g))
				require.Equal(t, []string{"/ends/child", "/ends"}, g.ended)
				last := g.told[len(g.told)-1]
				require.Equal(t, time.Second, last.Joined)
			})
		})
	}
}

// An Enter that returns another context is an error of the scope, and the task has the values that it would have had.
func TestEnterRefusesForeignContexts(t *testing.T) {
	for name, instead := range map[string]func(ctx context.Context, e async.Event) context.Context{
		"nil": func(context.Context, async.Event) context.Context { return nil },
		"done": func(_ context.Context, e async.Event) context.Context {
			return context.WithValue(e.Ctx, giverKey{}, "foreign")
		},
		"panic": func(context.Context, async.Event) context.Context { panic(errPlanted) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ran := ""
				err := async.Scope(context.WithValue(ctx, giverKey{}, "own"), func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { ran = givenIn(ctx); return nil })
					return nil
				}, async.Observe(&giver{instead: instead}))
				if name == "panic" {
					require.ErrorIs(t, err, errPlanted)
				} else {
					require.ErrorContains(t, err, "Enter of an observer")
				}
				require.Equal(t, "own", ran)
			})
		})
	}
}

// A kindGiver is an asker that gives tasks their names.
type kindGiver struct{ asker }

func (g *kindGiver) Enter(ctx context.Context, e async.Event) context.Context {
	return context.WithValue(ctx, giverKey{}, "/"+e.Task)
}

// Two observers give both; the context is cancelled as ever.
func TestEnterOfTwoObservers(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		type other struct{}
		outer := &giver{instead: func(ctx context.Context, e async.Event) context.Context {
			return context.WithValue(ctx, other{}, givenIn(ctx))
		}}
		inner := new(giver)
		cause := errors.New("enough")
		err := async.Scope(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				for range 2 {
					limited, cancel := context.WithCancelCause(ctx)
					f := async.Start(limited, func(ctx context.Context) error {
						require.Equal(t, "/both", givenIn(ctx))
						require.Equal(t, "/both", ctx.Value(other{}))
						cancel(cause)
						<-ctx.Done()
						return context.Cause(ctx)
					}, async.Name("both"))
					_, err := f.Wait(ctx)
					require.ErrorIs(t, err, cause)
				}
				return nil
			}, async.Observe(inner))
		}, async.Observe(outer))
		require.NoError(t, err)
	})
}

// An observer with both methods is told of what Kinds says, and gives values to each task. An event of a wait has the context of
// what was waited for, with the values of that.
func TestEnterBesideKinds(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g, plain := &kindGiver{asker: asker{kinds: []async.EventKind{async.EventEnd, async.EventWaited}}}, new(giver)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				slow := async.Start(ctx, func(context.Context) error { time.Sleep(time.Second); return nil }, async.Name("slow"))
				async.Go(ctx, func(ctx context.Context) error {
					_ = async.Sleep(ctx, time.Second/2)
					_, err := slow.Await(ctx, time.Minute)
					return err
				}, async.Name("waits"))
				async.Go(ctx, func(context.Context) error { return nil }, async.Daemon())
				return nil
			}, async.Observe(plain))
		}, async.Observe(g)))
		waits := g.of(async.EventWaited, "waits")
		require.Len(t, waits, 2)
		require.Nil(t, waits[0].On)
		require.Equal(t, "/slow", givenIn(waits[1].On))
		require.Equal(t, g.of(async.EventEnd, "slow")[0].ID, waits[1].Wait.On)
		require.Equal(t, time.Second/2, waits[1].Duration)
		require.Len(t, g.all, 2+4, "waits and ends, no start")
		for _, e := range plain.told {
			require.LessOrEqual(t, e.Kind, async.EventEnd, "it has no Kinds")
		}
	})
}

// An event says for what its task was made, whether somebody has named it, and whether its owner waits for it.
func TestEventsSayWhatATaskIs(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var mu sync.Mutex
		var told []string
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return nil }, async.Daemon())
			time.Sleep(time.Second)
			async.Go(ctx, func(context.Context) error { return nil }, async.Daemon(), async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
			time.Sleep(time.Second)
			async.Start(ctx, func(context.Context) error { return nil }, async.Name("named"))
			time.Sleep(time.Second)
			return async.Scope(ctx, func(context.Context) error { return nil })
		}, async.Observe(async.ObserverFunc(func(e async.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == async.EventEnd {
				told = append(told, fmt.Sprint(e.Of, e.Named, e.Daemon))
			}
		})))
		require.Equal(t, []string{
			fmt.Sprint(picture.KindGo, false, true), fmt.Sprint(picture.KindRun, false, true), fmt.Sprint(picture.KindFuture, true, false), fmt.Sprint(picture.KindScope, false, false),
		}, told)
	})
}
