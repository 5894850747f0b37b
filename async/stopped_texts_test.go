package async_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
)

const rows = "12 rows were not written"

// Every way in which a task says a text as its scope is stopped: it must be found once, in
// the error's fields or at the root.
func TestWhatAStoppedTaskSaysIsToldOnce(t *testing.T) {
	say := onStop(rows)
	pol := async.RestartPolicy{Interval: async.Every(time.Second)}
	failsFirst := func(next func(ctx context.Context) error) func(ctx context.Context) error {
		n := 0
		return func(ctx context.Context) error {
			if n++; n == 1 {
				return errSecond
			}
			return next(ctx)
		}
	}
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, start := range map[string]func(ctx context.Context) error{
		"go":     func(ctx context.Context) error { async.Go(ctx, say); return nil },
		"daemon": func(ctx context.Context) error { async.Go(ctx, say, async.Daemon()); async.Go(ctx, wait); return nil },
		"start":  func(ctx context.Context) error { async.Start(ctx, say); return nil },
		"start daemon": func(ctx context.Context) error {
			async.Start(ctx, say, async.Daemon())
			async.Go(ctx, wait)
			return nil
		},
		"body":         say,
		"nested scope": func(ctx context.Context) error { return async.Scope(ctx, say) },
		"nested go": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, say); return nil })
			return nil
		},
		"nested go beside a failure": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, say)
				<-ctx.Done()
				return errSecond
			})
			return nil
		},
		"start beside a failure": func(ctx context.Context) error {
			async.Start(ctx, func(ctx context.Context) error {
				async.Go(ctx, say)
				<-ctx.Done()
				return errSecond
			})
			return nil
		},
		"awaited and returned": func(ctx context.Context) error {
			_, err := async.Start(ctx, say).Join(ctx)
			return err
		},
		"restart":            func(ctx context.Context) error { async.Go(ctx, say, async.Restart(pol)); return nil },
		"restart second run": func(ctx context.Context) error { async.Go(ctx, failsFirst(say), async.Restart(pol)); return nil },
		"restart child": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, say); return nil }, async.Restart(pol))
			return nil
		},
		"restart child beside a failure": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, say)
				<-ctx.Done()
				return errSecond
			}, async.Restart(pol))
			return nil
		},
		"restart child beside a nil": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, say)
				<-ctx.Done()
				return nil
			}, async.Restart(pol))
			return nil
		},
		"restart start child beside a failure": func(ctx context.Context) error {
			async.Start(ctx, func(ctx context.Context) error {
				async.Go(ctx, say)
				<-ctx.Done()
				return errSecond
			}, async.Restart(pol))
			return nil
		},
		"restart child beside a panic": func(ctx context.Context) error {
			async.Start(ctx, func(ctx context.Context) error {
				async.Go(ctx, say)
				<-ctx.Done()
				panic("P")
			}, async.Restart(pol))
			return nil
		},
		"retry": func(ctx context.Context) error {
			_, err := async.Retry(ctx, async.Every(time.Second), func(ctx context.Context) (int, error) { return 0, say(ctx) })
			return err
		},
		"retry child": func(ctx context.Context) error {
			_, err := async.Retry(ctx, async.Every(time.Second), func(ctx context.Context) (int, error) { async.Go(ctx, say); return 0, nil })
			return err
		},
		"retry second": func(ctx context.Context) error {
			f := failsFirst(say)
			_, err := async.Retry(ctx, async.Every(time.Second), func(ctx context.Context) (int, error) { return 0, f(ctx) })
			return err
		},
		"retry named": func(ctx context.Context) error {
			_, err := async.Retry(ctx, async.Every(time.Second), func(ctx context.Context) (int, error) { return 0, say(ctx) }, async.Name("R"))
			return err
		},
		"poll": func(ctx context.Context) error {
			async.Poll(ctx, async.Every(time.Second), func(ctx context.Context) (int, bool, error) { return 0, false, say(ctx) })
			return nil
		},
		"poll tolerated": func(ctx context.Context) error {
			async.Poll(ctx, async.Every(time.Second), func(ctx context.Context) (int, bool, error) { return 0, false, say(ctx) }, async.Tolerate(3))
			return nil
		},
		"repeat": func(ctx context.Context) error { async.Repeat(ctx, async.Every(time.Second), say); return nil },
		"foreach": func(ctx context.Context) error {
			return async.ForEach(ctx, slices.Values([]int{1}), func(ctx context.Context, _ int) error { return say(ctx) })
		},
		"map": func(ctx context.Context) error {
			for _, err := range async.Map(ctx, slices.Values([]int{1}), func(ctx context.Context, _ int) (int, error) { return 0, say(ctx) }) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"forkjoin": func(ctx context.Context) error {
			async.ForkJoin(ctx, []int{1}, func(ctx context.Context, _ int) (int, error) { return 0, say(ctx) })
			return nil
		},
		"forkjoin child": func(ctx context.Context) error {
			async.ForkJoin(ctx, []int{1}, func(ctx context.Context, _ int) (int, error) { async.Go(ctx, say); return 0, nil })
			return nil
		},
		"group":        func(ctx context.Context) error { _ = async.NewGroup(ctx).Go(say); return nil },
		"group daemon": func(ctx context.Context) error { _ = async.NewGroup(ctx).Go(say, async.Daemon()); return wait(ctx) },
		"group start":  func(ctx context.Context) error { async.Start(async.NewGroup(ctx).Context(), say); return nil },
		"Fail with a text": func(ctx context.Context) error {
			stop := context.AfterFunc(ctx, func() {})
			_ = stop
			async.Go(ctx, func(ctx context.Context) error { return nil })
			<-ctx.Done()
			async.Fail(ctx, fmt.Errorf("%s: %w", rows, ctx.Err()))
			return ctx.Err()
		},
		"exit hook": func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return fmt.Errorf("%s: %w", rows, context.Cause(ctx)) })
			return wait(ctx)
		},
		"abort hook": func(ctx context.Context) error {
			async.Go(ctx, wait, async.OnAbort(func(_ context.Context, cause error) error { return fmt.Errorf("%s: %w", rows, cause) }))
			return nil
		},
		"settle": func(ctx context.Context) error {
			async.Settle(ctx, func(ctx context.Context) (int, error) { return 0, say(ctx) })
			return nil
		},
		"all": func(ctx context.Context) error {
			async.All(ctx, func(ctx context.Context) (int, error) { return 0, say(ctx) })
			return nil
		},
		"any": func(ctx context.Context) error {
			async.Any(ctx, func(ctx context.Context) (int, error) { return 0, say(ctx) })
			return nil
		},
		"detachafter": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, say)
				async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Hour); return nil })
				return nil
			}, async.DetachAfter(time.Minute))
		},
		"detachafter late": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Hour); return say(ctx) })
				return nil
			}, async.DetachAfter(time.Minute))
		},
		"shield": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { return async.Scope(ctx, say) })
			return nil
		},
		"onfailure": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, say); <-ctx.Done(); return errSecond })
				return nil
			}, async.OnFailure(func(err error) error { return err }))
		},
		"onfailure other": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, say); return nil })
				return nil
			}, async.OnFailure(func(err error) error { return nil }))
		},
		"limit queue": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, say); async.Go(ctx, say); return nil }, async.Limit(1))
		},
	} {
		for how, stop := range map[string]func(f func(ctx context.Context) error, ctx context.Context) error{
			"parent cancelled": func(f func(ctx context.Context) error, ctx context.Context) error {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(10*time.Second, func() { cancel(errors.New("stop")) })
				return async.Scope(ctx, f)
			},
			"sibling fails": func(f func(ctx context.Context) error, ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { time.Sleep(10 * time.Second); return errFirst })
					return f(ctx)
				})
			},
			"leader ends": func(f func(ctx context.Context) error, ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { time.Sleep(10 * time.Second); return nil }, async.Leader())
					return f(ctx)
				})
			},
			"sibling panics": func(f func(ctx context.Context) error, ctx context.Context) (err error) {
				defer func() { err, _ = recover().(error) }()
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { time.Sleep(10 * time.Second); panic("boom") })
					return f(ctx)
				})
			},
			"in a group stopped": func(f func(ctx context.Context) error, ctx context.Context) error {
				g := async.NewGroup(ctx)
				_ = g.Go(f)
				time.Sleep(10 * time.Second)
				return g.Stop(ctx, errors.New("stop"))
			},
			"in a dismissed daemon": func(f func(ctx context.Context) error, ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, f, async.Daemon())
					time.Sleep(10 * time.Second)
					return nil
				})
			},
			"in a dismissed group": func(f func(ctx context.Context) error, ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error {
					_ = async.NewGroup(ctx).Go(f)
					time.Sleep(10 * time.Second)
					return nil
				})
			},
			"in a group at the root, Shutdown": func(f func(ctx context.Context) error, ctx context.Context) error {
				_ = async.NewGroup(ctx).Go(f)
				time.Sleep(10 * time.Second)
				return async.Shutdown(ctx)
			},
		} {
			if (name == "group" || name == "group start") && how == "in a group stopped" {
				continue // it failed 10 s before Stop: the root was told
			}
			t.Run(name+"/"+how, func(t *testing.T) {
				withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
					var err error
					if v := panicFrom(func() { err = stop(start, ctx) }); v != nil {
						err, _ = v.(error)
					}
					time.Sleep(3 * time.Hour)
					synctest.Wait()
					n := strings.Count(fmt.Sprintf("%+v", err), rows) + r.count(rows)
					const want = 1
					if n != want {
						t.Errorf("told %d times\nerr: %v\nroot: %s", n, err, r.all())
					}
				})
			})
		}
	}
}
