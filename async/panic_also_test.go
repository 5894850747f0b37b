package async_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/async"
)

func attackScopePanic(ctx context.Context, body func(ctx context.Context) error, opts ...async.ScopeOption) (p *async.PanicError, err error) {
	v := panicFrom(func() { err = async.Scope(ctx, body, opts...) })
	p, _ = v.(*async.PanicError)
	return p, err
}

// A raised panic that passes a scope which lets a straggler go: what failed beside it is told, and who is left.
func TestARaisedPanicPassesDetachAfter(t *testing.T) {
	withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
		p, _ := attackScopePanic(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errSecond })
			async.Go(ctx, onStop(rows))
			async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Hour); return nil })
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { panic("boom") })
				return nil
			})
		}, async.DetachAfter(time.Second))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		all := r.all() + fmt.Sprintf("%+v", p)
		for _, want := range []string{errSecond.Error(), rows, "still running"} {
			if strings.Count(all, want) != 1 {
				t.Errorf("%q was told %d times:\nroot: %s\npanic: %+v", want, strings.Count(all, want), r.all(), p)
			}
		}
	})
}

func TestAPanicAndATextBesideDetachAfter(t *testing.T) {
	withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
		p, _ := attackScopePanic(ctx, func(ctx context.Context) error {
			async.Go(ctx, onStop(rows))
			async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Hour); return nil })
			async.Go(ctx, func(ctx context.Context) error { panic("boom") })
			return nil
		}, async.DetachAfter(time.Second))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		all := r.all() + fmt.Sprintf("%+v", p)
		if strings.Count(all, rows) != 1 {
			t.Errorf("the text was told %d times:\nroot: %s\npanic: %+v", strings.Count(all, rows), r.all(), p)
		}
	})
}

// Each error beside a panic is in Also once, by whatever way it came.
func TestWhatCameBesideAPanicIsListedOnce(t *testing.T) {
	task := func(ctx context.Context) error {
		async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return errSecond })
		panic("boom")
	}
	same := async.OnPanic(func(p *async.PanicError) error { return p })
	for name, f := range map[string]func(ctx context.Context) error{
		"go":    func(ctx context.Context) error { async.Go(ctx, task); return nil },
		"start": func(ctx context.Context) error { async.Start(ctx, task); return nil },
		"restart": func(ctx context.Context) error {
			async.Go(ctx, task, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 1}))
			return nil
		},
		"restart start": func(ctx context.Context) error {
			async.Start(ctx, task, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 1}))
			return nil
		},
		"awaited": func(ctx context.Context) error { _, err := async.Start(ctx, task).Join(ctx); return err },
		"group":   func(ctx context.Context) error { g := async.NewGroup(ctx); _ = g.Go(task); return g.Wait(ctx) },
		"group nobody waits": func(ctx context.Context) error {
			g := async.NewGroup(ctx)
			_ = g.Go(task)
			async.Go(ctx, func(ctx context.Context) error { return nil })
			return nil
		},
		"onpanic": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, task); return nil }, same)
		},
		"nested": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, task); return nil })
			return nil
		},
		"forkjoin": func(ctx context.Context) error {
			async.ForkJoin(ctx, []int{1}, func(ctx context.Context, _ int) (int, error) { return 0, task(ctx) })
			return nil
		},
		"scope in start": func(ctx context.Context) error {
			async.Start(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error { async.Go(ctx, task); return nil })
			})
			return nil
		},
		"start in start": func(ctx context.Context) error {
			async.Start(ctx, func(ctx context.Context) error { async.Start(ctx, task); return nil })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
				var cause error
				p, err := attackScopePanic(ctx, func(ctx context.Context) error {
					context.AfterFunc(ctx, func() { cause = context.Cause(ctx) })
					return f(ctx)
				})
				synctest.Wait()
				all := r.all()
				if p != nil {
					all += fmt.Sprintf("%v", p)
					if !errors.Is(p, cause) && cause != async.ErrScopeEnded || !strings.Contains(p.Error(), "goroutine ") {
						t.Errorf("cause %v, raised %v", cause, p)
					}
				} else {
					all += fmt.Sprintf("%+v", err)
					if err != nil && strings.Contains(err.Error(), "goroutine ") {
						t.Errorf("a returned panic has a stack in its text: %v", err)
					}
				}
				if n := strings.Count(all, errSecond.Error()); n != 1 {
					t.Errorf("told %d times:\nroot: %s\npanic: %+v\nerr: %+v", n, r.all(), p, err)
				}
				if n := strings.Count(all, ": boom"); n != 1 {
					t.Errorf("panic told %d times:\nroot: %s\npanic: %+v\nerr: %+v", n, r.all(), p, err)
				}
			})
		})
	}
}

// Forty panics: one is raised, 32 beside it, the rest counted.
func TestFortyPanics(t *testing.T) {
	withToldRoot(t, func(t *testing.T, ctx context.Context, r *toldRoot) {
		p, _ := attackScopePanic(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				for i := range 40 {
					async.Go(ctx, func(ctx context.Context) error { time.Sleep(time.Second); panic(fmt.Sprint("boom", i)) })
				}
				return nil
			})
		})
		if p == nil || len(p.Also) != 32 || !strings.Contains(p.Error(), "and 7 more") || r.all() != "" {
			t.Errorf("%d %v root %s", len(p.Also), p, r.all())
		}
	})
}
