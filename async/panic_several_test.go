package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func attackScopePanic(ctx context.Context, body func(ctx context.Context) error, opts ...async.ScopeOption) (p *async.PanicError, err error) {
	v := panicFrom(func() { err = async.Scope(ctx, body, opts...) })
	p, _ = v.(*async.PanicError)
	return p, err
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

func panicsFirst(context.Context) error { panic(http.ErrAbortHandler) }

func panicsLater(context.Context) error { panic(http.ErrAbortHandler) }

// TestAPanicThatWasRecoveredIsNoLaterOne, though both have the same value, as
// those of servers have: the later one has its own stack, and is told.
func TestAPanicThatWasRecoveredIsNoLaterOne(t *testing.T) {
	var told []string
	ctx := asynctest.Context(t)
	err := async.Scope(ctx, func(ctx context.Context) error {
		_, err := async.Start(ctx, func(ctx context.Context) error {
			require.Equal(t, http.ErrAbortHandler, recovered(func() { _ = async.Scope(ctx, panicsFirst, async.Name("first")) }))
			return panicsLater(ctx)
		}, async.Name("second")).Await(ctx, 0)
		requirePanic(t, err, "second", "panicsLater")
		return nil
	}, async.Observe(async.ObserverFunc(func(e async.Event) {
		if e.Kind == async.EventPanic {
			told = append(told, e.Task)
		}
	})))
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, told)
}

// TestAPanicThatIsPassedOnIsOne, also by a function that has recovered it: the scopes
// further out raise what the first has raised, and its cause matches that.
func TestAPanicThatIsPassedOnIsOne(t *testing.T) {
	ctx := asynctest.Context(t)
	var cause error
	_, err := async.Start(ctx, func(ctx context.Context) error {
		defer func() { panic(recover()) }()
		return async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, panicsFirst, async.Name("first"))
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		})
	}, async.Name("second")).Await(ctx, 0)
	requirePanic(t, err, "first", "panicsFirst")
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, cause, err)
	require.NotContains(t, err.Error(), "\n", "that of a panic which is returned is one line")
}

func TestSeveralPanicsAndErrorsAreAllKept(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		other, failed := errors.New("other"), errors.New("failed")
		told := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { panic(errPlanted) })
				async.Go(ctx, func(context.Context) error { time.Sleep(time.Second); panic(other) })
				async.Go(ctx, func(context.Context) error { time.Sleep(2 * time.Second); return failed })
				return nil
			})
		})
		for _, want := range []error{errPlanted, other, failed} {
			require.ErrorIs(t, everythingIn(told), want)
		}
	})
}

func TestASecondPanicIsListedOnce(t *testing.T) {
	second := func(ctx context.Context) error { <-ctx.Done(); panic(io.ErrShortWrite) }
	for name, start := range map[string]func(ctx context.Context){
		"Go":     func(ctx context.Context) { async.Go(ctx, second) },
		"future": func(ctx context.Context) { async.Start(ctx, second) },
		"scope in a task": func(ctx context.Context) {
			async.Go(ctx, func(ctx context.Context) error { return async.Scope(ctx, second) })
		},
		"task with a task": func(ctx context.Context) {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, second); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := panicOrError(func() error {
					return async.Scope(ctx, func(ctx context.Context) error {
						start(ctx)
						async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
						return nil
					})
				})
				require.Equal(t, 1, strings.Count(err.Error(), ": "+errPlanted.Error()), err)
				require.Equal(t, 1, strings.Count(err.Error(), ": "+io.ErrShortWrite.Error()), err)
			})
		})
	}
}

func TestAPanicBehind32UnclaimedErrorsIsRaised(t *testing.T) {
	ctx := asynctest.Context(t)
	err := panicOrError(func() error {
		return async.Scope(ctx, func(ctx context.Context) error {
			for i := range 32 {
				<-async.Start(ctx, func(context.Context) error { return fmt.Errorf("error %d", i) }).Done()
			}
			<-async.Start(ctx, func(context.Context) error { plantedPanic(); return nil }).Done()
			return nil
		})
	})
	require.IsType(t, (*async.PanicError)(nil), err)
	require.ErrorIs(t, err, errPlanted)
}

// TestAPanicIsToldOnceThroughScopesWhereSiblingsFail: the scope that raises it tells
// what failed there, and the root what failed further out.
func TestAPanicIsToldOnceThroughScopesWhereSiblingsFail(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		const depth = 8
		var nest func(ctx context.Context, depth int) error
		nest = func(ctx context.Context, depth int) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("flush %d failed", depth) })
				if depth == 0 {
					async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
					return nil
				}
				return nest(ctx, depth-1)
			})
		}
		ctx, check := asynctest.Root(ctx)
		text := panicOrError(func() error { return nest(ctx, depth) }).Error()
		require.Equal(t, 1, strings.Count(text, errPlanted.Error()+"\n"), text)
		require.Equal(t, 1, strings.Count(text, "failed"), text)
		require.Contains(t, text, "flush 0 failed")
		require.Equal(t, depth, strings.Count(check().Error(), "failed"))
	})
}

// TestWhatCameBesideASecondPanicIsKept, though it says that it was stopped because of
// the first, and a panic is never attached to itself.
func TestWhatCameBesideASecondPanicIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := panicOrError(func() error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return io.ErrNoProgress })
					<-ctx.Done()
					panic(io.ErrShortWrite)
				})
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				return nil
			})
		})
		for _, want := range []error{errPlanted, io.ErrShortWrite, io.ErrNoProgress} {
			require.ErrorIs(t, everythingIn(err), want)
		}
		require.Equal(t, 1, strings.Count(err.Error(), ": "+errPlanted.Error()), err)
		require.Equal(t, 1, strings.Count(err.Error(), io.ErrNoProgress.Error()), err)
	})
}

// TestWhatFailedBesideABodysPanicIsTold by the root, as the value has no place
// for it; a PanicError of ours has.
func TestWhatFailedBesideABodysPanicIsTold(t *testing.T) {
	beside := errors.New("beside it")
	program := func(ctx context.Context, value any) any {
		return recovered(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return beside })
				panic(value)
			})
		})
	}
	inBubble(t, func(t *testing.T, _ context.Context) {
		ctx, check := asynctest.Root(t.Context())
		require.Equal(t, "words", program(ctx, "words"))
		require.ErrorIs(t, check(), beside)

		ctx, check = asynctest.Root(t.Context())
		_, err := async.Start(ctx, func(context.Context) error { plantedPanic(); return nil }).Await(ctx, 0)
		got := program(ctx, err)
		require.Same(t, err, got, "it goes on as it was")
		require.NotErrorIs(t, everythingIn(got.(error)), beside)
		require.ErrorIs(t, check(), beside)
	})
}

// TestTheFirstPanicIsRaised, also if the body panics because of it.
func TestTheFirstPanicIsRaised(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		value := recovered(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				<-ctx.Done()
				panic("because of it")
			})
		})
		p, ok := value.(*async.PanicError)
		require.True(t, ok, "%T", value)
		require.Equal(t, errPlanted, p.Value)
		require.Contains(t, p.Error(), "because of it")
		require.Equal(t, 1, strings.Count(p.Error(), errPlanted.Error()+"\n"))
	})
}

// TestPanicsThatNameEachOtherHaveATextWithAnEnd: a task whose child has
// panicked first panics as well, and both are told in the scope around.
func TestPanicsThatNameEachOtherHaveATextWithAnEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		value := recovered(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(context.Context) error { panic(errors.New("child")) })
					<-ctx.Done()
					panic(errors.New("parent"))
				})
				return nil
			})
		})
		text := value.(error).Error()
		require.Contains(t, text, "child")
		require.Contains(t, text, "parent")
	})
}

// TestAServerThatOutlivesPanicsKeepsNothingOfThem.
func TestAServerThatOutlivesPanicsKeepsNothingOfThem(t *testing.T) {
	n := fewer(100_000, 2_000)
	var asked atomic.Int32
	require.NoError(t, async.Scope(asynctest.Context(t), func(ctx context.Context) error {
		run := func(n int) {
			for range n {
				done := make(chan struct{})
				async.Go(ctx, func(ctx context.Context) error {
					defer close(done)
					async.Go(ctx, waitHook)
					panic(errPlanted)
				})
				select {
				case <-done:
				case <-ctx.Done(): // it did count
				}
			}
		}
		run(n / 10)
		before := heapInUse()
		run(n)
		require.Less(t, heapInUse(), before+uint64(20*n))
		return nil
	}, async.Limit(2), async.OnPanic(func(*async.PanicError) error { asked.Add(1); return nil })))
	require.Equal(t, n+n/10, int(asked.Load()))
}
