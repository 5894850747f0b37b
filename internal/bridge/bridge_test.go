package bridge_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/internal/bridge"
)

func TestMain(m *testing.M) { os.Exit(clitest.LeakChecked(m).Run()) }

// A plant is something of another package that takes time to end.
type plant struct {
	takes time.Duration
	how   bridge.Ending
	fails error
}

func (p *plant) ScopeEnds(how bridge.Ending, _ error) { p.how = how }
func (p *plant) Ended() bool                          { return false }
func (p *plant) Name() string                         { return "plant" }
func (p *plant) Join(context.Context) error           { growHere(p.takes); return p.fails }
func (p *plant) Left() []bridge.Left {
	return []bridge.Left{{Task: "leaf", Frame: "bridge_test.growHere("}, {Task: "flower"}}
}

//go:noinline
func growHere(d time.Duration) { time.Sleep(d) }

// TestWhatTakesTimeToEndIsJoined without a time limit, in turn with the exit
// hooks, and only DetachAfter lets a scope return before.
func TestWhatTakesTimeToEndIsJoined(t *testing.T) {
	run := func(ctx context.Context, p *plant, body error, opts ...async.ScopeOption) error {
		return async.Scope(ctx, func(ctx context.Context) error {
			bridge.AtEnd(bridge.ScopeOf(ctx), p)
			return body
		}, append(opts, async.Name("scope"))...)
	}
	t.Run("joined", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx := asynctest.Context(t)
			begin := time.Now()
			p := &plant{takes: time.Hour, fails: errors.New("withered")}
			require.Equal(t, p.fails, run(ctx, p, nil))
			require.Equal(t, time.Hour, time.Since(begin))
			require.Equal(t, bridge.Well, p.how)
		})
	})
	t.Run("let go", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx := asynctest.Context(t)
			begin := time.Now()
			failed := errors.New("failed")
			err := run(ctx, &plant{takes: time.Hour}, failed, async.DetachAfter(time.Second))
			require.Equal(t, time.Second, time.Since(begin))
			require.ErrorIs(t, err, failed)
			var left *async.StragglerError
			require.ErrorAs(t, err, &left)
			var names []string
			for _, s := range left.Left {
				names = append(names, s.Task)
			}
			require.Equal(t, []string{"end of plant of scope", "leaf", "flower"}, names)
			require.Contains(t, left.Left[1].Stack, "growHere")
			require.Equal(t, []string{"scope"}, asynctest.Live(ctx))
			time.Sleep(time.Hour)
			require.Empty(t, asynctest.Live(ctx))
		})
	})
	t.Run("Shutdown does not wait for it as for a hook", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx := asynctest.Context(t)
			ctx, _ = asynctest.Root(ctx)
			_ = run(ctx, &plant{takes: time.Hour}, errors.New("failed"), async.DetachAfter(time.Second))
			begin := time.Now()
			patient, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			require.ErrorContains(t, async.Shutdown(patient), "plant")
			require.Less(t, time.Since(begin), time.Minute)
			time.Sleep(time.Hour)
		})
	})
}

// An endRecord notes that it was told, and may do something then.
type endRecord struct {
	name  string
	told  *[]string
	then  func()
	bytes []byte
}

func (e *endRecord) ScopeEnds(bridge.Ending, error) {
	*e.told = append(*e.told, e.name)
	if e.then != nil {
		e.then()
	}
}

func TestWhatIsTakenOffAScopeIsNotTold(t *testing.T) {
	var told []string
	var first, fourth bridge.Registration
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		scope := bridge.ScopeOf(ctx)
		add := func(name string) bridge.Registration {
			return bridge.AtEnd(scope, &endRecord{name: name, told: &told})
		}
		first = add("first")
		second := add("second")
		add("third")
		async.OnExit(ctx, func(context.Context, error) error { told = append(told, "hook"); return nil })
		fourth = bridge.AtEnd(scope, &endRecord{name: "fourth", told: &told, then: func() {
			fourth.Remove() // it is being told: nothing is left to be removed
			first.Remove()
		}})
		fifth := add("fifth")
		require.True(t, second.Remove())
		require.False(t, second.Remove(), "it was removed before")
		fifth.Remove()
		return nil
	}))
	require.Equal(t, []string{"fourth", "hook", "third"}, told)
	fourth.Remove()
	first.Remove()
}

func TestWhatIsTakenOffAScopeIsNotKept(t *testing.T) {
	const n, size = 1000, 10_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		scope := bridge.ScopeOf(ctx)
		var told []string
		bridge.AtEnd(scope, &endRecord{name: "stays", told: &told})
		before := heap()
		for range n {
			bridge.AtEnd(scope, &endRecord{told: &told, bytes: make([]byte, size)}).Remove()
		}
		require.Less(t, heap(), before+n*size/10)
		require.Empty(t, told)
		return nil
	}))
}

func TestAtEndOfAnEndedScopeIsNil(t *testing.T) {
	var scope context.Context
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error { scope = bridge.ScopeOf(ctx); return nil }))
	require.Nil(t, bridge.AtEnd(scope, &endRecord{}))
}

// TestRemovalMayRaceWithTheEnd, and with other removals: each Ender is told at
// most once, and none after its removal has come back before the scope ended.
func TestRemovalMayRaceWithTheEnd(t *testing.T) {
	const n = 100
	var told []string
	var others sync.WaitGroup
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		scope := bridge.ScopeOf(ctx)
		for range n {
			r := bridge.AtEnd(scope, &endRecord{told: &told})
			others.Go(func() { r.Remove() })
			others.Go(func() { r.Remove() })
		}
		return nil
	}))
	others.Wait()
	require.LessOrEqual(t, len(told), n)
}
