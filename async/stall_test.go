package async_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
	"github.com/ambit-go/ambit/async/internal/look"
)

// TestWhoIsLeftIsNamedWherever it stands: the body itself, also one that starts
// a task later, and a task of an inner scope.
func TestWhoIsLeftIsNamedWherever(t *testing.T) {
	stays := func(context.Context) error { time.Sleep(time.Hour); return nil }
	starts := func(ctx context.Context) error { async.Go(ctx, stays, async.Name("culprit")); return nil }
	inner := func(ctx context.Context) error { return async.Scope(ctx, starts) }
	var told atomic.Pointer[async.StragglerError]
	stall := async.OnStall(time.Second, func(e *async.StragglerError) {
		if told.Swap(e) != nil {
			panic("called twice")
		}
	})
	detach := async.DetachAfter(time.Second)
	for name, test := range map[string]struct {
		body func(ctx context.Context) error
		opts []async.ScopeOption
	}{
		"body":                    {stays, []async.ScopeOption{stall, async.Name("culprit")}},
		"started late":            {func(ctx context.Context) error { time.Sleep(2 * time.Second); return starts(ctx) }, []async.ScopeOption{stall, async.Name("culprit")}},
		"in an inner scope":       {inner, []async.ScopeOption{stall}},
		"of a sibling":            {func(ctx context.Context) error { async.Go(ctx, inner); return nil }, []async.ScopeOption{stall}},
		"of a sibling, let go of": {func(ctx context.Context) error { async.Go(ctx, inner); return nil }, []async.ScopeOption{detach}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				told.Store(nil)
				cancelled, cancel := context.WithCancel(ctx)
				cancel()
				err := async.Scope(cancelled, test.body, test.opts...)
				left := told.Load()
				if left == nil {
					require.ErrorAs(t, err, &left)
				}
				var names []string
				for _, l := range left.Left {
					names = append(names, l.Task)
				}
				require.Contains(t, strings.Join(names, " "), "culprit")
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// TestAStragglerIsNamedWhoseHandlerHasReturned: its value is being discarded.
func TestAStragglerIsNamedWhoseHandlerHasReturned(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Execute(ctx, func(context.Context) (int, error) { return 1, nil },
					async.OnDiscard(func(int) { time.Sleep(time.Minute) }))
				return nil
			}, async.Name("discards"))
			return errPlanted
		}, async.DetachAfter(time.Second))
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Equal(t, "discards", left.Left[0].Task)
		time.Sleep(time.Minute)
	})
}

// A call of OnStall is nobody who is left behind: it is waited for, for as long as a
// hook may take.
func TestAScopeDoesNotLeaveACallOfOnStallBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		require.Equal(t, errPlanted, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, sleeps(2*time.Second))
			return errPlanted
		}, async.DetachAfter(3*time.Second), async.OnStall(time.Second, func(*async.StragglerError) { time.Sleep(4 * time.Second) })))
		require.Equal(t, 5*time.Second, time.Since(begin))
	})
}

// One that has overrun its time is a straggler as any other.
func TestACallOfOnStallThatTakesTooLongIsLeftBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, sleeps(2*time.Second))
			return errPlanted
		}, async.DetachAfter(3*time.Second), async.OnStall(time.Second, func(*async.StragglerError) { time.Sleep(time.Minute) }))
		require.Equal(t, 6*time.Second, time.Since(begin))
		var left *async.StragglerError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Contains(t, left.Left[0].Task, "stall hook")
		time.Sleep(time.Minute)
	})
}

// The scope returns without its tasks after OnStall was found to be due, and before it
// is called.
func TestOnStallIsNotCalledIfScopeReturnsMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		begin := time.Now()
		var looks atomic.Int32
		var returned, late atomic.Bool
		stopped, stop := context.WithCancelCause(ctx)
		tell := func(*async.StragglerError) { late.Store(late.Load() || returned.Load()) }
		err := async.Scope(staleCtx{stopped, func() {
			if time.Since(begin) < time.Second {
				return
			}
			if looks.Add(1) == 2 { // OnStall looks who is left
				stop(errPlanted)
				time.Sleep(time.Millisecond)
			}
		}}, func(ctx context.Context) error {
			async.Go(ctx, sleeps(time.Hour))
			return nil
		}, async.OnStall(time.Second, tell), async.DetachAfter(0))
		returned.Store(true)
		require.ErrorAs(t, err, new(*async.StragglerError))
		require.GreaterOrEqual(t, looks.Load(), int32(2))
		time.Sleep(2 * time.Hour)
		require.False(t, late.Load())
	})
}

// A stallRecord keeps what OnStall was told.
type stallRecord struct {
	mu    sync.Mutex
	begin time.Time
	told  []string
	last  *async.StragglerError
}

func newStallRecord() *stallRecord { return &stallRecord{begin: time.Now()} }

func (r *stallRecord) after(d time.Duration) async.ScopeOption {
	return async.OnStall(d, func(e *async.StragglerError) {
		r.mu.Lock()
		defer r.mu.Unlock()
		line := fmt.Sprintf("%v %v:", time.Since(r.begin), e.Cause)
		for _, s := range e.Left {
			line += " " + s.Task
		}
		r.told, r.last = append(r.told, line), e
	})
}

func sleeps(d time.Duration) func(context.Context) error {
	return func(context.Context) error { time.Sleep(d); return nil }
}

// TestOnStallIsCalledAfterTheBodyAndAfterTheCancellation, once for each, while
// anybody is left.
func TestOnStallIsCalledAfterTheBodyAndAfterTheCancellation(t *testing.T) {
	const second = time.Second
	for name, tc := range map[string]struct {
		body func(ctx context.Context) error
		want []string
	}{
		"nobody is left": {
			func(ctx context.Context) error { async.Go(ctx, sleeps(second/2), async.Name("short")); return nil },
			nil,
		},
		"a loop that nobody told to stop": {
			func(ctx context.Context) error { async.Go(ctx, sleeps(9*second), async.Name("loop")); return nil },
			[]string{"1s <nil>: loop"},
		},
		"a slow body is no stall": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("loop"))
				time.Sleep(3 * second)
				return nil
			},
			[]string{"4s <nil>: loop"},
		},
		"cancelled later": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("loop"))
				async.Go(ctx, func(context.Context) error { time.Sleep(5 * second); return errPlanted }, async.Name("fails"))
				return nil
			},
			[]string{"1s <nil>: loop fails", "6s planted: loop"},
		},
		"cancelled at once": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("loop"))
				return errPlanted
			},
			[]string{"1s planted: loop"},
		},
		"cancelled between": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("loop"))
				async.Go(ctx, func(context.Context) error { time.Sleep(second / 2); return errPlanted })
				return nil
			},
			[]string{"1.5s planted: loop"},
		},
		"the body is left": {
			func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { return errPlanted })
				time.Sleep(3 * second)
				return nil
			},
			[]string{"1s planted: culprit"},
		},
		"an exit hook is left": {
			func(ctx context.Context) error {
				async.OnExit(ctx, func(context.Context, error) error { time.Sleep(3 * second); return nil })
				return nil
			},
			[]string{"1s <nil>: exit hook of culprit"},
		},
		"a daemon waits for the others": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("daemon"), async.Daemon())
				async.Go(ctx, sleeps(2*second), async.Name("loop"))
				return nil
			},
			[]string{"1s <nil>: loop"},
		},
		"only a daemon is left": {
			func(ctx context.Context) error {
				async.Go(ctx, sleeps(9*second), async.Name("daemon"), async.Daemon())
				return nil
			},
			[]string{"1s <nil>: daemon"},
		},
		"inner scopes and what they have started": {
			func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error {
					return async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, sleeps(9*second), async.Name("first"))
						async.Go(ctx, sleeps(9*second), async.Name("second"))
						return nil
					}, async.Name("inner"))
				}, async.Name("outer"))
				async.Go(ctx, sleeps(9*second), async.Name("third"))
				return nil
			},
			[]string{"1s <nil>: outer first second third"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				r := newStallRecord()
				_ = async.Scope(ctx, tc.body, r.after(second), async.Name("culprit"))
				require.Equal(t, tc.want, r.told)
				if r.last != nil {
					left := r.last.Left
					require.Contains(t, left[len(left)-1].Stack, "time.Sleep")
				}
			})
		})
	}
}

// TestOnStallIsNotCalledOnceScopeHasReturned without its tasks.
func TestOnStallIsNotCalledOnceScopeHasReturned(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		r := newStallRecord()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, sleeps(time.Minute))
			return errPlanted
		}, r.after(2*time.Second), async.DetachAfter(time.Second))
		require.ErrorAs(t, err, new(*async.StragglerError))
		time.Sleep(time.Minute)
		require.Empty(t, r.told)
	})
}

// TestAStallIsToldWhileAnEarlierOneIs: a slow hook is not who is left.
func TestAStallIsToldWhileAnEarlierOneIs(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		calls := 0
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, sleeps(2*time.Second))
			return nil
		}, async.OnStall(time.Second, func(e *async.StragglerError) {
			calls++
			require.Len(t, e.Left, 1)
			time.Sleep(time.Minute)
		})))
		require.Equal(t, 1, calls)
	})
}

// TestManyScopesThatStallAtOnceShareALookAtTheStacks: a look stops the world for
// as long as there are goroutines. Two hundred looks took 5 to 12 s.
func TestManyScopesThatStallAtOnceShareALookAtTheStacks(t *testing.T) {
	const n = 200
	for name, option := range map[string]func(chan<- error) async.ScopeOption{
		"OnStall": func(told chan<- error) async.ScopeOption {
			return async.OnStall(time.Millisecond, func(e *async.StragglerError) { told <- e })
		},
		"DetachAfter": func(chan<- error) async.ScopeOption { return async.DetachAfter(time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(asynctest.Context(t))
			told, release := make(chan error, 2*n), make(chan struct{})
			before := look.Count()
			var scopes, run sync.WaitGroup
			run.Add(n)
			for i := range n {
				scopes.Go(func() {
					err := async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(context.Context) error { run.Done(); <-release; return nil }, async.Name(fmt.Sprint("task ", i)))
						<-ctx.Done()
						return nil
					}, option(told))
					if errors.As(err, new(*async.StragglerError)) {
						told <- err
					}
				})
			}
			run.Wait() // a goroutine that has not run yet has no stack
			stop()
			for range n {
				var e *async.StragglerError
				require.ErrorAs(t, <-told, &e)
				require.Contains(t, e.Left[0].Task, "task") // the body may be slow to end, too
				require.Contains(t, e.Left[0].Stack, "stall_test.go")
			}
			require.Less(t, look.Count()-before, int64(n/4))
			close(release)
			scopes.Wait()
		})
	}
}

// TestAStragglersStackIsItsOwn also if it was started when others had just
// stalled, and in another bubble at the same time of its clock.
func TestAStragglersStackIsItsOwn(t *testing.T) {
	for range 20 {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			for range 3 {
				for name, wait := range map[string]func(){"waitHere": waitHere, "waitThere": waitThere} {
					var told *async.StragglerError
					_ = async.Scope(ctx, func(ctx context.Context) error {
						async.Go(ctx, func(context.Context) error { wait(); return nil })
						return errPlanted
					}, async.OnStall(time.Nanosecond, func(e *async.StragglerError) { told = e }))
					require.NotNil(t, told)
					require.Contains(t, told.Left[0].Stack, name)
				}
			}
		})
	}
}

//go:noinline
func waitHere() { time.Sleep(2 * time.Nanosecond) }

//go:noinline
func waitThere() { time.Sleep(2 * time.Nanosecond) }

func TestMoreThan32StragglersAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		r := newStallRecord()
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			for i := range 100 {
				async.Go(ctx, sleeps(time.Minute), async.Name(fmt.Sprint("task ", i)))
			}
			return nil
		}, r.after(time.Second)))
		require.Len(t, r.last.Left, 32)
		require.Equal(t, 68, r.last.More)
		require.Equal(t, "task 0", r.last.Left[0].Task)
		require.Equal(t, "task 31", r.last.Left[31].Task)
	})
}

func TestOnStallNamesWhoIsLeftOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		calls := 0
		begin := time.Now()
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { time.Sleep(time.Minute); return nil }, async.Name("stubborn"))
			return errPlanted
		}, async.OnStall(time.Second, func(e *async.StragglerError) {
			calls++
			require.Equal(t, time.Second, time.Since(begin))
			require.Equal(t, "stubborn", e.Left[0].Task)
			require.ErrorIs(t, e, errPlanted)
		}))
		require.Equal(t, errPlanted, err)
		require.Equal(t, 1, calls)
	})
}
