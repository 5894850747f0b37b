//go:build explore

package async

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ambit-go/ambit/internal/bridge"
	"github.com/ambit-go/ambit/internal/explore"
)

var (
	errLate    = errors.New("late")
	errStopped = errors.New("stopped")
)

// A scope gives its tasks up while the last of them fails and ends, in any order. What
// failed is told once, by the scope or by the root; the scope names somebody, or waits
// for all; whoever looks finds what has not ended at the root or below it; daemons are
// told to go; the exit hook is run once; and nothing is left.
func TestExploreAScopeGivesItsTasksUp(t *testing.T) {
	for name, opts := range map[string][]ScopeOption{
		"alone":          nil,
		"beside OnStall": {OnStall(time.Millisecond, func(*StragglerError) {})},
	} {
		t.Run(name, func(t *testing.T) {
			explore.Run(t, explore.Config{Schedules: 4000, Ticks: 12, Steps: 6000}, func(w *explore.World) {
				exploreGivingUp(w, opts)
			})
		})
	}
}

func exploreGivingUp(w *explore.World, opts []ScopeOption) {
	var told, hooks int
	var started, ended bool
	tell := func(err error) {
		switch {
		case errors.Is(err, errLate):
			told++
		case err != nil:
			w.Failf("told to the root: %v", err)
		}
	}
	root := bridge.NewRoot(context.Background(), tell, func(string) {})
	top, join := bridge.OpenTop(root)
	end, looked := make(chan struct{}), make(chan struct{})
	w.Go("ends", func() { close(end) })
	w.Go("looks", func() {
		for range 3 {
			if before := started; before && len(bridge.Live(root)) == 0 && !ended {
				w.Failf("a task has not ended, and nobody finds it")
			}
		}
		close(looked)
	})
	err := Scope(top, func(ctx context.Context) error {
		OnExit(ctx, func(context.Context, error) error { hooks++; return nil })
		unstopped := context.WithoutCancel(ctx)
		Go(unstopped, func(ctx context.Context) error { <-ctx.Done(); return nil }, Daemon())
		Go(unstopped, func(context.Context) error { <-end; ended = true; return errLate })
		started = true
		return errStopped
	}, append(opts, DetachAfter(time.Millisecond))...)
	var left *StragglerError
	switch {
	case !errors.Is(err, errStopped):
		w.Failf("the scope has returned %v", err)
	case errors.As(err, &left) && len(left.Left) == 0:
		w.Failf("the scope has returned without tasks that it does not name")
	case left == nil && (hooks != 1 || !ended):
		w.Failf("the scope has returned before all has ended")
	}
	if errors.Is(err, errLate) {
		told++
	}
	<-looked
	if err := Shutdown(root); err != nil {
		w.Failf("something is left: %v", err)
	}
	if err := join(root); err != nil {
		w.Failf("the top has failed: %v", err)
	}
	if told != 1 || hooks != 1 {
		w.Failf("the failure was told %d times, and %d exit hooks have run", told, hooks)
	}
}
