package async_test

import (
	"context"
	"errors"
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

// What gives another context is an error of the scope, and the task has the values that it would have had.
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

// A task that was cancelled before it ran, and a wait of a millisecond or more for what is no part of the waiter, are told
// to those that give values, and to no other.
func TestEnterIsToldOfSkipsAndWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := new(giver)
		plain := func(e async.Event) { require.Less(t, e.Kind, async.EventSkip) }
		_ = async.Scope(ctx, func(ctx context.Context) error {
			slow := async.Start(ctx, func(context.Context) error { time.Sleep(time.Second); return nil }, async.Name("slow"))
			return async.Scope(ctx, func(ctx context.Context) error {
				waits := async.Start(ctx, func(ctx context.Context) error {
					own := async.Start(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Second/2) }, async.Name("own"))
					if _, err := own.Wait(ctx); err != nil {
						return err
					}
					_, err := slow.Await(ctx, time.Minute)
					return err
				}, async.Name("waits"))
				_, err := waits.Join(ctx)
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return nil }) // lends nothing
				queued := async.Start(ctx, func(context.Context) error { return nil }, async.Name("queued"))
				queued.Cancel(errPlanted)
				return err
			}, async.Limit(1))
		}, async.Observe(g), async.Observe(g))
		_ = async.Scope(ctx, func(ctx context.Context) error { return nil }, async.Observe(async.ObserverFunc(plain)))
		var told []string
		for _, e := range g.told {
			switch e.Kind {
			case async.EventSkip:
				require.ErrorIs(t, e.Cause, errPlanted)
				told = append(told, "skip "+e.Task)
			case async.EventWait:
				require.Equal(t, time.Second/2, e.Duration)
				told = append(told, e.Kind.String()+" "+givenIn(e.Ctx)+" for "+givenIn(e.On))
			case async.EventEnd:
				require.False(t, e.Echo)
				if e.Task == "waits" {
					require.Equal(t, picture.KindFuture, e.Of)
					require.True(t, e.Named)
				}
			}
		}
		require.Contains(t, told, "skip queued")
		require.Contains(t, told, "wait /scope/waits for /slow")
		for _, text := range told {
			require.NotContains(t, text, "own")
		}
	})
}
