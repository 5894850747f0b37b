package async_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
)

// A group at the root that has failed while nobody waits: the text beside the failure is told, too.
func TestARootGroupTellsTextsBesideItsFailure(t *testing.T) {
	for name, end := range map[string]func(g *async.Group, ctx context.Context){
		"it fails, Shutdown": func(g *async.Group, ctx context.Context) { time.Sleep(time.Minute); _ = async.Shutdown(ctx) },
		"a wait that is cut off": func(g *async.Group, ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_ = g.Wait(ctx)
		},
	} {
		for _, how := range []string{"error", "panic"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
					g := async.NewGroup(ctx)
					_ = g.Go(onStop(rows))
					_ = g.Go(func(ctx context.Context) error {
						time.Sleep(time.Second)
						if how == "panic" {
							panic("failure A")
						}
						return errFirst
					})
					end(g, ctx)
					time.Sleep(time.Hour)
					synctest.Wait()
					if r.count("failure A") != 1 || r.count(rows) != 1 {
						t.Errorf("failure %d, text %d: %s", r.count("failure A"), r.count(rows), r.all())
					}
				})
			})
		}
	}
}

// Two failures are told to the root once, though nobody waits for ten seconds and more.
func TestARootGroupTellsTwoFailuresOnce(t *testing.T) {
	withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
		g := async.NewGroup(ctx)
		_ = g.Go(func(context.Context) error { return errFirst })
		_ = g.Go(func(ctx context.Context) error { <-ctx.Done(); return errSecond })
		time.Sleep(time.Minute)
		_ = async.Shutdown(ctx)
		synctest.Wait()
		if r.count("failure A") != 1 || r.count("failure B") != 1 {
			t.Errorf("told %s", r.all())
		}
	})
}

// A dismissed group: what its owner is told, in each way of being cut off.
func TestADismissedGroupNamesWhatWasCutOff(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	for name, start := range map[string]func(g *async.Group){
		"Go": func(g *async.Group) { _ = g.Go(wait, async.Name("victim")) },
		"Go ctx.Err": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, async.Name("victim"))
		},
		"Start": func(g *async.Group) { async.Start(g.Context(), wait, async.Name("victim")) },
		"Poll": func(g *async.Group) {
			async.Repeat(g.Context(), async.Every(time.Second), func(context.Context) error { return nil }, async.Name("victim"))
		},
		"Restart": func(g *async.Group) {
			_ = g.Go(wait, async.Name("victim"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
		},
		"Restart failed": func(g *async.Group) {
			n := 0
			_ = g.Go(func(ctx context.Context) error {
				if n++; n == 1 {
					return errSecond
				}
				return wait(ctx)
			}, async.Name("victim"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
		},
		"in a pause": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { return errSecond }, async.Name("victim"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Hour)}))
		},
		"nested group": func(g *async.Group) {
			_ = async.NewGroup(g.Context(), async.Name("inner")).Go(wait, async.Name("victim"))
		},
		"nested task": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { async.Go(ctx, wait); return nil }, async.Name("victim"))
		},
		"queued": func(g *async.Group) {
			async.Go(g.Context(), func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, wait); async.Go(ctx, wait); return nil }, async.Limit(1))
			}, async.Name("victim"))
		},
		"forkjoin": func(g *async.Group) {
			async.ForkJoin(g.Context(), []int{1}, func(ctx context.Context, _ int) (int, error) { return 0, wait(ctx) }, async.Name("victim"))
		},
		"race": func(g *async.Group) {
			async.Race(g.Context(), func(ctx context.Context) (int, error) { return 0, wait(ctx) })
		},
		"failing scope": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { <-ctx.Done(); return errFirst }, async.Name("victim"))
		},
		"daemon with a task": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { async.Go(ctx, wait, async.Name("quiet")); return nil }, async.Daemon())
		},
		"daemon":  func(g *async.Group) { _ = g.Go(wait, async.Name("quiet"), async.Daemon()) },
		"nothing": func(g *async.Group) {},
		"nil": func(g *async.Group) {
			_ = g.Go(func(ctx context.Context) error { <-ctx.Done(); return nil }, async.Name("quiet"))
		},
		"withoutcancel": func(g *async.Group) {
			async.Go(context.WithoutCancel(g.Context()), func(ctx context.Context) error { time.Sleep(time.Minute); return nil }, async.Name("quiet"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					start(async.NewGroup(ctx, async.Name("G")))
					time.Sleep(10 * time.Second)
					return nil
				})
				synctest.Wait()
				quiet := strings.HasPrefix(name, "daemon") || name == "nothing" || name == "nil" || name == "withoutcancel"
				loud := err != nil
				if quiet == loud || r.all() != "" {
					t.Errorf("%v\nroot: %s", err, r.all())
				}
				t.Logf("%v", err)
			})
		})
	}
}
