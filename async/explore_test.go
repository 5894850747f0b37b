//go:build explore

package async

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ambit-go/ambit/internal/bridge"
	"github.com/ambit-go/ambit/internal/explore"
)

// TestExplore runs programs that are made by chance in orders that are, too,
// and holds them to what is true of every program.
func TestExplore(t *testing.T) {
	explore.Run(t, explore.Config{}, exploreProgram)
}

func exploreProgram(w *explore.World) {
	p := makeProgram(w.Rand())
	m := &machine{w: w}
	w.Describe(p)
	w.AtEnd(m.check)
	top, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx := bridge.NewRoot(top, func(err error) { m.locked(func() { m.lost = append(m.lost, err) }) }, func(string) {})
	e := env{machine: m, ctx: ctx}
	_ = e.scope(p)
	if w.Elapsed() > time.Second {
		w.Failf("it took %v", w.Elapsed())
	}
	patient, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	if err := Shutdown(patient); err != nil {
		w.Failf("something is left: %v", err)
	}
}

// check looks at every task when nothing goes on any more.
func (m *machine) check() error {
	for _, h := range m.all {
		if st := h.f.State(); st != Done {
			return fmt.Errorf("a task is %v in the end", st)
		}
		value, err, _ := h.f.Result()
		switch {
		case h.ran > 1 && !h.again:
			return fmt.Errorf("a handler ran %d times", h.ran)
		case h.aborts > max(h.ran, 1):
			return fmt.Errorf("an abort hook was called %d times", h.aborts)
		case h.running > 0:
			return errors.New("a handler runs in the end")
		case !h.plain:
		case h.ran == 0 && err == nil:
			return errors.New("a task that never ran has no error")
		case h.hooked && h.dropped > max(h.ran, 1):
			return fmt.Errorf("a value was discarded %d times", h.dropped)
		case h.hooked && h.ended && h.err == nil && h.value != 0 && h.dropped == h.ran && h.given > 0:
			return errors.New("a value was given and discarded")
		case h.ended && isPlanted(h.err) && !h.daemons.excuse(h.ctx) && !tells(err, h.err):
			return fmt.Errorf("a handler returned %v, the outcome is %v", h.err, err)
		case err == nil && (!h.ended || h.err != nil || value != h.value):
			return fmt.Errorf("the outcome is %d, the handler ended: %v with %d, %v", value, h.ended, h.value, h.err)
		}
	}
	for _, err := range m.lost { // of loops that were left, say, and beside panics
		if p := new(PanicError); errors.As(err, &p) {
			if _, ok := p.Value.(plantedPanic); !ok {
				return fmt.Errorf("a panic was told to the root: %v", err)
			}
		}
	}
	return nil
}

// isPlanted reports whether err is a handler's own, and nothing that it was told.
func isPlanted(err error) bool {
	_, ok := err.(plantedError)
	return ok
}

// A context that is done stays done, also while the scope of its task is made,
// which is on first need, and by another goroutine perhaps.
func TestExploreADoneContextStaysDone(t *testing.T) {
	explore.Run(t, explore.Config{Level: explore.Atomics, Ticks: -1, Schedules: 5000}, func(w *explore.World) {
		top := bridge.NewRoot(context.Background(), func(err error) { w.Failf("told to the root: %v", err) }, func(string) {})
		_ = Scope(top, func(ctx context.Context) error {
			child := make(chan context.Context, 1)
			Go(ctx, func(ctx context.Context) error {
				child <- ctx
				before, cause := ctx.Err(), context.Cause(ctx)
				if after := ctx.Err(); before != nil && after != before {
					w.Failf("the context of a task said %v, now it says %v", before, after)
				}
				if after := context.Cause(ctx); cause != nil && after != cause {
					w.Failf("the cause of a task's context was %v, now it is %v", cause, after)
				}
				return nil
			})
			w.Go("makes the scope", func() { (<-child).Done() })
			return errRefused // cancels
		})
	})
}

// Dismissing a daemon that is about to leave is done once, not until it has
// left: a schedule that prefers the joining goroutine would never end.
func TestExploreADaemonIsDismissedOnce(t *testing.T) {
	explore.Run(t, explore.Config{Level: explore.Atomics, Schedules: 3000, Ticks: -1, Steps: 1000}, func(w *explore.World) {
		top := bridge.NewRoot(context.Background(), func(err error) { w.Failf("told to the root: %v", err) }, func(string) {})
		err := Scope(top, func(ctx context.Context) error {
			Go(ctx, func(ctx context.Context) error {
				Start(ctx, func(context.Context) error { return nil })
				return nil
			}, Daemon())
			return nil
		})
		if err != nil {
			w.Failf("a scope failed: %v", err)
		}
	})
}

// A promise that is rejected while its scope ends has settled when the scope
// returns, and its error is in what that returns, unless the scope was first.
func TestExploreAPromiseSettlesBeforeItsScopeReturns(t *testing.T) {
	explore.Run(t, explore.Config{Strategy: explore.Exhaustive(2), Ticks: -1}, func(w *explore.World) {
		top := bridge.NewRoot(context.Background(), func(err error) { w.Failf("told to the root: %v", err) }, func(string) {})
		var f *Future[int]
		rejected := make(chan bool, 1)
		err := Scope(top, func(ctx context.Context) error {
			var p *Promise[int]
			f, p = NewPromise[int](ctx)
			w.Go("rejects", func() { rejected <- p.Reject(plantedError(1)) })
			return nil
		})
		if _, why, ok := f.Result(); !ok {
			w.Failf("a scope has returned before a promise of it settled")
		} else if errors.Is(why, plantedError(1)) != <-rejected {
			w.Failf("a promise holds %v", why)
		} else if !errors.Is(why, ErrAbandoned) && !errors.Is(err, why) {
			w.Failf("the scope lost %v: %v", why, err)
		}
	})
}

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
