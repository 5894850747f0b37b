//go:build explore

package async

import (
	"context"
	"errors"
	"testing"

	"github.com/ambit-go/ambit/internal/bridge"
	"github.com/ambit-go/ambit/internal/explore"
)

// A Go that races the end of its group runs and is joined, or is refused; and a
// group goes to rest and wakes while its owner ends, or is cancelled.
func TestExploreGoRacesTheEndOfAGroup(t *testing.T) {
	for name, end := range map[string]func(g *Group, ctx context.Context) error{
		"Stop": func(g *Group, ctx context.Context) error { return g.Stop(ctx, errRefused) },
		"Wait": func(g *Group, ctx context.Context) error { return g.Wait(ctx) },
		"nobody": func(*Group, context.Context) error {
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			explore.Run(t, explore.Config{Schedules: 4000, Ticks: -1, Steps: 3000}, func(w *explore.World) {
				top := bridge.NewRoot(context.Background(), func(err error) { w.Failf("told to the root: %v", err) }, func(string) {})
				var over bool
				var ran, accepted int
				goes := make(chan struct{}, 2)
				err := Scope(top, func(ctx context.Context) error {
					g := NewGroup(ctx)
					OnExit(g.Context(), func(context.Context, error) error { return nil })
					try := func() {
						err := g.Go(func(context.Context) error {
							if over {
								w.Failf("a task runs in a group that has ended")
							}
							ran++
							return nil
						})
						if err == nil {
							accepted++
						} else if !errors.Is(err, ErrScopeEnded) {
							w.Failf("Go was refused with %v", err)
						}
						goes <- struct{}{}
					}
					try()
					w.Go("goes", try)
					if err := end(g, ctx); err != nil {
						w.Failf("the group failed: %v", err)
					}
					over = name != "nobody"
					return nil
				})
				<-goes
				<-goes
				if err != nil || ran != accepted {
					w.Failf("%v; of %d tasks that were accepted %d have run", err, accepted, ran)
				}
				if err := Shutdown(top); err != nil {
					w.Failf("something is left: %v", err)
				}
			})
		})
	}
}
