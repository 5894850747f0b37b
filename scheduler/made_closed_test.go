package scheduler

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// A countedRegistration is counted while it stands.
type countedRegistration struct {
	bridge.Registration
	standing *atomic.Int64
}

func (r countedRegistration) Remove() bool {
	removed := r.Registration.Remove()
	if removed {
		r.standing.Add(-1)
	}
	return removed
}

// countRegistrations counts what is registered at the end of scopes. A worker that
// has just been registered goes on when it is about to be over.
func countRegistrations(t *testing.T) *atomic.Int64 {
	standing, atEnd := new(atomic.Int64), bridge.AtEnd
	t.Cleanup(func() { bridge.AtEnd = atEnd })
	bridge.AtEnd = func(scope context.Context, e bridge.Ender) bridge.Registration {
		r := atEnd(scope, e)
		if r == nil {
			return nil
		}
		standing.Add(1)
		w := (*ExecutorWorker)(e.(*member))
		for !w.Closed() {
			runtime.Gosched()
		}
		for range rand.IntN(200) { // what is left of its end takes about as long
			_ = w.Closed()
		}
		return countedRegistration{r, standing}
	}
	return standing
}

// TestAWorkerThatIsClosedWhileItIsMadeLeavesNothingInItsScope: whichever comes
// first, the scheduler's Close or NewWorker, in a scope that lasts.
func TestAWorkerThatIsClosedWhileItIsMadeLeavesNothingInItsScope(t *testing.T) {
	standing := countRegistrations(t)
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		for range 100_000 / RaceFactor {
			s := New(Goroutines())
			var both sync.WaitGroup
			var w *ExecutorWorker
			both.Go(func() { w = s.NewWorker(ctx) })
			both.Go(func() { _ = s.Close() })
			both.Wait()
			require.NoError(t, w.Close())
			require.NoError(t, w.Wait(ctx))
			require.Zero(t, standing.Load())
		}
		return nil
	}))
}
