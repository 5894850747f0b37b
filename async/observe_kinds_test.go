package async_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/part"
	"github.com/ambit-go/ambit/async/picture"
)

// An asker is an observer that asks for kinds of events, and keeps what it is told.
type asker struct {
	kinds []async.EventKind
	mu    sync.Mutex
	all   []async.Event
}

func (a *asker) Kinds() []async.EventKind { return a.kinds }

func (a *asker) Observe(e async.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, e)
}

// of returns the events of a kind that a task was the subject of.
func (a *asker) of(kind async.EventKind, task string) (all []async.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.all {
		if e.Kind == kind && strings.HasSuffix(e.Task, task) {
			all = append(all, e)
		}
	}
	return all
}

var rareKinds = []async.EventKind{async.EventQueued, async.EventSkipped, async.EventWaited}

// Whoever does not ask is told of starts, ends and panics alone; whoever asks, of what was asked for alone.
func TestRareEventsReachThoseWhoAsk(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		usual, rare, none := &asker{}, &asker{kinds: rareKinds}, &asker{}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) }, async.Name("sleeps"))
			return nil
		}, async.Observe(async.ObserverFunc(usual.Observe)), async.Name("usual")))
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Second) }, async.Name("sleeps"))
				return nil
			}, async.Observe(none))
		}, async.Observe(rare)))
		kinds := func(a *asker) (all []async.EventKind) {
			for _, e := range a.all {
				all = append(all, e.Kind)
			}
			return all
		}
		require.Equal(t, []async.EventKind{async.EventStart, async.EventEnd}, kinds(usual))
		require.Equal(t, []async.EventKind{async.EventQueued, async.EventWaited}, kinds(rare))
		require.Empty(t, none.all)
		require.Zero(t, usual.all[1].PC, "nobody has asked where it was started")
	})
}

// A task that queues says for how long it has, and where it was started; one that is cancelled in the queue ends there.
func TestWhatObserversAreToldOfAQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		a := &asker{kinds: append(slices.Clone(rareKinds), async.EventStart, async.EventEnd)}
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Second); return nil }, async.Name("first"))
			synctest.Wait()
			async.Go(ctx, func(ctx context.Context) error { return nil }, async.Name("second"))
			cancelledIn, stop := context.WithCancelCause(ctx)
			third := async.Start(cancelledIn, func(ctx context.Context) error { return nil }, async.Name("third"))
			time.Sleep(time.Millisecond)
			stop(errPlanted)
			_, _ = third.Wait(ctx)
			return nil
		}, async.Limit(1), async.Observe(a))
		for _, task := range []string{"first", "second", "third"} {
			queued := a.of(async.EventQueued, task)
			require.Len(t, queued, 1, task)
			f, _ := runtime.CallersFrames([]uintptr{queued[0].PC}).Next()
			require.Contains(t, f.Function, "TestWhatObserversAreToldOfAQueue", task)
			require.True(t, strings.HasSuffix(f.File, "observe_kinds_test.go"), f.File)
		}
		require.Equal(t, time.Second, a.of(async.EventStart, "second")[0].Queued)
		require.Equal(t, time.Second, a.of(async.EventEnd, "second")[0].Queued)
		require.Zero(t, a.of(async.EventEnd, "first")[0].Queued)
		require.Equal(t, a.of(async.EventQueued, "second")[0].PC, a.of(async.EventEnd, "second")[0].PC)
		require.Empty(t, a.of(async.EventEnd, "third"))
		skipped := a.of(async.EventSkipped, "third")
		require.Len(t, skipped, 1)
		require.Equal(t, time.Millisecond, skipped[0].Queued)
		require.ErrorIs(t, skipped[0].Cause, errPlanted)
		require.Empty(t, a.of(async.EventSkipped, "second"))
	})
}

// Among items that a worker does one after another the first one has queued.
func TestItemsQueueOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		a := &asker{kinds: []async.EventKind{async.EventStart, async.EventEnd}}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); return nil })
			synctest.Wait()
			return async.ForEach(ctx, slices.Values([]int{1, 2, 3}), func(context.Context, int) error { time.Sleep(time.Minute); return nil },
				async.Limit(1), async.Name("each"))
		}, async.Limit(1), async.Observe(a)))
		var queued []time.Duration
		for _, e := range a.all {
			if strings.HasPrefix(e.Task, "each/") {
				queued = append(queued, e.Queued)
			}
		}
		require.Equal(t, []time.Duration{time.Second, time.Second, 0, 0, 0, 0}, queued)
	})
}

// A wait is told when it is over, with how long it was, and for whom; one that is shorter than a millisecond is not.
func TestWhatObserversAreToldOfWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		a := &asker{kinds: rareKinds}
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			slow := async.Start(ctx, func(ctx context.Context) error { time.Sleep(3 * time.Second); return nil }, async.Name("slow"))
			async.Go(ctx, func(ctx context.Context) error { _, err := slow.Wait(ctx); return err }, async.Name("waits"))
			async.Go(ctx, func(ctx context.Context) error { _, _ = slow.Await(ctx, time.Second); return nil }, async.Name("gives up"))
			async.Go(ctx, func(ctx context.Context) error {
				if err := async.Sleep(ctx, time.Millisecond-1); err != nil {
					return err
				}
				return async.Sleep(ctx, 2*time.Second)
			}, async.Name("sleeps"))
			async.Go(ctx, func(ctx context.Context) error {
				var w part.Wait
				w.Begin(ctx, partNamed{"pool", "db"}, "a connection")
				time.Sleep(time.Second)
				w.End()
				return nil
			}, async.Name("needs db"))
			return nil
		}, async.Observe(a)))
		one := func(task string) async.Event {
			all := a.of(async.EventWaited, task)
			require.Len(t, all, 1, task)
			return all[0]
		}
		waits := one("waits")
		require.Equal(t, 3*time.Second, waits.Duration)
		require.Equal(t, picture.WayAwait, waits.Wait.How)
		require.Equal(t, a.of(async.EventQueued, "slow")[0].ID, waits.Wait.On)
		require.Equal(t, "slow", waits.Wait.Name)
		require.InDelta(t, time.Second, one("gives up").Duration, 1)
		require.Equal(t, 2*time.Second, one("sleeps").Duration)
		require.Equal(t, picture.Wait{How: picture.WaySleep}, *one("sleeps").Wait)
		require.Equal(t, picture.Wait{How: picture.WayPart, Name: "pool db", Text: "a connection"}, *one("needs db").Wait)
		require.Empty(t, a.of(async.EventWaited, "slow"))
	})
}

// partNamed is a part with a kind and a name.
type partNamed struct{ kind, name string }

func (s partNamed) Look() part.View { return part.View{Kind: s.kind, Name: s.name} }

// An observed task says when it began; one that nobody observes does not.
func TestAPictureKnowsWhenObservedTasksBegan(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		end := make(chan struct{})
		defer close(end)
		start := func(ctx context.Context) {
			time.Sleep(time.Second)
			async.Go(ctx, func(context.Context) error { <-end; return nil }, async.Name("one"))
			async.Go(ctx, func(context.Context) error { <-end; return nil }, async.Name("two"))
			time.Sleep(time.Hour)
		}
		begun := func(ctx context.Context) (all []time.Time) {
			for _, n := range async.Snapshot(async.Of(ctx)).Nodes[1:] {
				all = append(all, n.Begun)
			}
			return all
		}
		async.Go(ctx, func(ctx context.Context) error {
			start(ctx)
			require.Equal(t, []time.Time{{}, {}}, begun(ctx))
			return nil
		})
		async.Go(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				at := time.Now().Add(time.Second)
				start(ctx)
				for _, b := range begun(ctx) {
					require.True(t, at.Equal(b), b)
				}
				return nil
			}, async.Observe(&asker{}), async.Limit(1000))
		})
		time.Sleep(2 * time.Hour)
	})
}
