package async_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

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
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		scope := bridge.ScopeOf(ctx)
		var told []string
		bridge.AtEnd(scope, &endRecord{name: "stays", told: &told})
		before := heapInUse()
		for range n {
			bridge.AtEnd(scope, &endRecord{told: &told, bytes: make([]byte, size)}).Remove()
		}
		require.Less(t, heapInUse(), before+n*size/10)
		require.Empty(t, told)
		return nil
	}))
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
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
