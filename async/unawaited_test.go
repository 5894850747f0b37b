package async_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

// fails is a handler that fails, with a name that is not a closure's.
func fails(context.Context) error { return errPlanted }

func failsWith[T any](err error) func(context.Context) (T, error) {
	return func(context.Context) (none T, _ error) { return none, err }
}

// The failure of each of these is told by the scope with the name of a task and that
// nobody awaited it. task is "" if it is told as it is.
var unawaited = map[string]struct {
	start func(ctx context.Context)
	task  string
	text  string // of what the scope returns; "" if that is not looked at
}{
	"Start": {
		start: func(ctx context.Context) { async.Start(ctx, fails) },
		task:  "async_test.fails", text: "async: async_test.fails: nobody awaited it: planted",
	},
	"Start with a name": {
		start: func(ctx context.Context) { async.Start(ctx, fails, async.Name("report")) },
		task:  "report", text: "async: report: nobody awaited it: planted",
	},
	"Execute": {
		start: func(ctx context.Context) { async.Execute(ctx, failsWith[int](errPlanted), async.Name("read")) },
		task:  "read", text: "async: read: nobody awaited it: planted",
	},
	"Execute with a discard hook": {
		start: func(ctx context.Context) {
			async.Execute(ctx, failsWith[int](errPlanted), async.Name("read"), async.OnDiscard(func(int) {}))
		},
		task: "read",
	},
	"in a scope with a name": {
		start: func(ctx context.Context) {
			async.Go(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error { async.Start(ctx, fails); return nil }, async.Name("deploy"))
			})
		},
		task: "deploy/async_test.fails", text: "async: deploy/async_test.fails: nobody awaited it: planted",
	},
	"in a task that nobody awaited": {
		start: func(ctx context.Context) {
			async.Start(ctx, func(ctx context.Context) error { async.Start(ctx, fails, async.Name("inner")); return nil }, async.Name("outer"))
		},
		task: "inner", text: "async: inner: nobody awaited it: planted",
	},
	"wrapped by a task that nobody awaited": {
		start: func(ctx context.Context) {
			async.Start(ctx, func(ctx context.Context) error {
				err := async.Scope(ctx, func(ctx context.Context) error { async.Start(ctx, fails, async.Name("inner")); return nil })
				return errors.Join(err, io.EOF)
			}, async.Name("outer"))
		},
		task: "outer", text: "async: outer: nobody awaited it: inner: nobody awaited it: planted\n\tEOF",
	},
	"several failures of a task": {
		start: func(ctx context.Context) {
			async.Start(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { return io.EOF })
				<-ctx.Done()
				return errPlanted
			}, async.Name("outer"))
		},
		task: "outer", text: "async: outer: nobody awaited it: EOF\n\t\tplanted",
	},
	"its own Timeout": {
		start: func(ctx context.Context) {
			async.Start(ctx, joinUntilDone, async.Name("fetch"), async.Timeout(time.Second))
		},
		task: "fetch", text: "async: fetch: nobody awaited it: context deadline exceeded (limit 1s, waited 1s)",
	},
	"Goexit": {
		start: func(ctx context.Context) {
			async.Start(ctx, func(context.Context) error { runtime.Goexit(); return nil }, async.Name("exits"))
		},
		task: "exits",
	},
	"Restart": {
		start: func(ctx context.Context) {
			async.Start(ctx, fails, async.Name("pull"), async.Restart(async.RestartPolicy{Interval: async.Every(time.Second), Attempts: 2}))
		},
		task: "pull", text: "async: pull: nobody awaited it: given up after 2 failures within 1m0s; last failure: planted",
	},
	"a rejected promise": {
		start: func(ctx context.Context) {
			_, p := async.NewPromise[int](ctx)
			p.Reject(errPlanted)
		},
		task: "promise", text: "async: promise: nobody awaited it: planted",
	},
	"a choice": {
		start: func(ctx context.Context) { async.Race(ctx, failsWith[int](errPlanted)) },
	},
	"Settle": {
		start: func(ctx context.Context) { async.Settle(ctx, failsWith[int](errPlanted), failsWith[int](io.EOF)) },
	},
	"ForkJoin": {
		start: func(ctx context.Context) {
			async.ForkJoin(ctx, []int{0, 1}, func(context.Context, int) (int, error) { return 0, errPlanted })
		},
	},
	"Poll": {
		start: func(ctx context.Context) {
			async.Poll(ctx, async.Every(time.Second), func(context.Context) (int, bool, error) { return 0, false, errPlanted })
		},
	},
	"a Wait that was cut short": {
		start: func(ctx context.Context) {
			f := async.Start(ctx, func(context.Context) error { time.Sleep(time.Hour); return errPlanted }, async.Name("report"))
			brief, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, _ = f.Wait(brief)
		},
		task: "report",
	},
}

// TestAFailureThatNobodyAwaitedNamesItsTask whatever has made the future, and
// errors.Is and As find the failure.
func TestAFailureThatNobodyAwaitedNamesItsTask(t *testing.T) {
	for name, tc := range unawaited {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var seen error
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.OnExit(ctx, func(_ context.Context, outcome error) error { seen = outcome; return nil })
					tc.start(ctx)
					return nil
				})
				var forgotten *async.UnawaitedError
				require.ErrorAs(t, err, &forgotten)
				require.Same(t, seen, err, "the exit hooks have seen another")
				if tc.task != "" {
					require.Equal(t, tc.task, forgotten.Task)
				}
				if tc.text != "" {
					require.Equal(t, tc.text, err.Error())
				}
				require.Contains(t, err.Error(), forgotten.Task+": nobody awaited it: ")
				switch name {
				case "Goexit":
					require.ErrorIs(t, err, async.ErrGoexit)
				case "its own Timeout":
					var limit *async.TimeoutError
					require.ErrorAs(t, err, &limit)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				default:
					require.ErrorIs(t, err, errPlanted)
				}
			})
		})
	}
}

// TestWhatNeedsNoAwaitIsToldAsItIs: the failure of a Go task, of the body, of a future
// that was awaited, of a group; and a panic, which is raised and says where it was.
func TestWhatNeedsNoAwaitIsToldAsItIs(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context) error{
		"Go":       func(ctx context.Context) error { async.Go(ctx, fails); return nil },
		"the body": fails,
		"an Await": func(ctx context.Context) error { _, err := async.Start(ctx, fails).Await(ctx, 0); return err },
		"an Await after it has failed": func(ctx context.Context) error {
			f := async.Start(ctx, fails)
			synctest.Wait()
			_, err := f.Await(ctx, 0)
			return err
		},
		"a group": func(ctx context.Context) error { return async.NewGroup(ctx, async.Name("uploads")).Go(fails) },
		"a group of a group": func(ctx context.Context) error {
			return async.NewGroup(async.NewGroup(ctx).Context(), async.Name("uploads")).Go(fails)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.Same(t, errPlanted, async.Scope(ctx, body))
			})
		})
	}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		raised := panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Start(ctx, func(context.Context) error { panic(errPlanted) }, async.Name("breaks"))
				return nil
			})
		})
		require.IsType(t, new(async.PanicError), raised)
		require.NotContains(t, raised.(error).Error(), "nobody awaited")
		require.Equal(t, "breaks", raised.(*async.PanicError).Task)
	})
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			f := async.Start(ctx, func(context.Context) error { panic(errPlanted) })
			async.Start(ctx, func(ctx context.Context) error { _, err := f.Wait(ctx); return err })
			return nil
		})
		require.IsType(t, new(async.PanicError), err, "one that was given, and returned")
	})
}

// TestAGroupTellsOfAFutureInItThatNobodyAwaited to those who wait for the group, or to
// its owner.
func TestAGroupTellsOfAFutureInItThatNobodyAwaited(t *testing.T) {
	const text = "async: report: nobody awaited it: planted"
	inBubble(t, func(t *testing.T, ctx context.Context) {
		g := async.NewGroup(ctx)
		async.Start(g.Context(), fails, async.Name("report"))
		require.EqualError(t, g.Wait(ctx), text)
		require.EqualError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Start(async.NewGroup(ctx).Context(), fails, async.Name("report"))
			return nil
		}), text)
	})
}

// This file is about what becomes of failures that nobody awaited beside others: they
// are judged, and listed, as what the task has returned is.

// TestAnUnawaitedFailureIsListedOnce, like any error, however many repeat it: whether
// it comes by itself, from a future, from a scope inside, or is why the scope was
// cancelled. The one that came first is told.
func TestAnUnawaitedFailureIsListedOnce(t *testing.T) {
	start := func(name string) func(ctx context.Context) {
		return func(ctx context.Context) { async.Start(ctx, fails, async.Name(name)) }
	}
	inScope := func(ctx context.Context) {
		async.Go(ctx, func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error { start("inner")(ctx); return nil })
		})
	}
	goes := func(ctx context.Context) { async.Go(ctx, fails) }
	inHook := func(ctx context.Context) {
		async.OnExit(ctx, func(ctx context.Context, _ error) error { start("hook's")(ctx); return nil })
	}
	hook := func(ctx context.Context) { async.OnExit(ctx, func(context.Context, error) error { return errPlanted }) }
	for name, tc := range map[string]struct {
		do   []func(ctx context.Context)
		text string
	}{
		"two futures":                  {[]func(context.Context){start("one"), start("one")}, "async: one: nobody awaited it: planted"},
		"a Go task and a future":       {[]func(context.Context){goes, start("one")}, "planted"},
		"a scope inside and a Go task": {[]func(context.Context){inScope, synctestWait, goes}, "async: inner: nobody awaited it: planted"},
		"a scope inside and a future":  {[]func(context.Context){start("one"), inScope}, "async: inner: nobody awaited it: planted"},
		"two hooks":                    {[]func(context.Context){inHook, hook}, "planted"},
		"two hooks, the other way":     {[]func(context.Context){hook, inHook}, "async: hook's: nobody awaited it: planted"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.EqualError(t, async.Scope(ctx, func(ctx context.Context) error {
					for _, f := range tc.do {
						f(ctx)
					}
					return nil
				}), tc.text)
			})
		})
	}
}

func synctestWait(context.Context) { synctest.Wait() }

// TestAnUnawaitedFailureIsTheCauseWithWhichTheScopeWasCancelled: it is not told again
// as the cause.
func TestAnUnawaitedFailureIsTheCauseWithWhichTheScopeWasCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancelCause(ctx)
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Start(ctx, fails, async.Name("report"))
			synctest.Wait()
			cancel(errPlanted)
			return nil
		})
		require.EqualError(t, err, "async: report: nobody awaited it: planted")
	})
}

// TestAnUnawaitedFailureBesideAPanicIsNamed: by the scope that raises the panic; what
// failed further out the root is told.
func TestAnUnawaitedFailureBesideAPanicIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, check := asynctest.Root(ctx)
		p := panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Start(ctx, fails, async.Name("outer"))
				async.Go(ctx, func(ctx context.Context) error {
					return async.Scope(ctx, func(ctx context.Context) error {
						async.Start(ctx, fails, async.Name("inner"))
						synctest.Wait()
						async.Go(ctx, func(context.Context) error { panic("boom") })
						return nil
					})
				})
				return nil
			})
		}).(*async.PanicError)
		var forgotten *async.UnawaitedError
		require.ErrorAs(t, everythingIn(p), &forgotten)
		require.Equal(t, "inner", forgotten.Task)
		require.ErrorAs(t, check(), &forgotten)
		require.Equal(t, "outer", forgotten.Task)
		require.Equal(t, 1, strings.Count(p.Error(), "planted"), p)
	})
}

// TestAnUnawaitedFailureThatHoldsAPanicIsToldBesideIt, in a text with an end.
func TestAnUnawaitedFailureThatHoldsAPanicIsToldBesideIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		p := panicFrom(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				f := async.Start(ctx, func(context.Context) error { panic("boom") })
				async.Start(ctx, func(ctx context.Context) error {
					_, err := f.Wait(ctx)
					async.Go(ctx, func(context.Context) error { panic(err) })
					return nil
				})
				async.Start(ctx, func(ctx context.Context) error {
					_, err := f.Wait(ctx)
					return &async.ScopeError{Errors: []error{err, errPlanted}}
				}, async.Name("lists"))
				return nil
			})
		}).(*async.PanicError)
		require.Equal(t, 2, strings.Count(p.Error(), "boom"), p)
		require.ErrorIs(t, everythingIn(p), errPlanted)
	})
}

// TestAnUnawaitedFailureIsAnEchoIfTheFailureIs: whether it only repeats why the scope
// around was cancelled is asked of the failure.
func TestAnUnawaitedFailureIsAnEchoIfTheFailureIs(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancelCause(ctx)
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				err := async.Scope(context.WithoutCancel(ctx), func(inner context.Context) error {
					inner, stop := context.WithCancelCause(inner)
					stop(errPlanted)
					async.Start(inner, func(ctx context.Context) error { return context.Cause(ctx) }, async.Name("report"))
					return nil
				})
				require.ErrorContains(t, err, "async: report: nobody awaited it: planted")
				cancel(errPlanted)
				return err
			})
			return nil
		}, async.Name("deploy"))
		require.EqualError(t, err, "async: deploy: planted") // once, as the cause
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Empty(t, list.Errors)
	})
}

// TestListsOfUnawaitedFuturesAreFlattened: what a future failed with that was stopped
// for the cause of the scope around is that scope's, each with the name of the task.
func TestListsOfUnawaitedFuturesAreFlattened(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancelCause(ctx)
		cause := errors.New("shutting down")
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				err := async.Scope(context.WithoutCancel(ctx), func(inner context.Context) error {
					inner, stop := context.WithCancelCause(inner)
					async.Start(inner, func(ctx context.Context) error { <-ctx.Done(); return errPlanted }, async.Name("report"))
					synctest.Wait()
					stop(cause)
					return nil
				})
				cancel(cause)
				return err
			})
			return nil
		}, async.Name("deploy"))
		require.EqualError(t, err, "async: deploy: shutting down\n\treport: nobody awaited it: planted")
		require.ErrorIs(t, err, errPlanted)
	})
}

// TestAnUnawaitedFailureIsFoundByThoseWhoDecide: OnFailure and Restart are told of
// the scope's error, and find the failure in it. An observer is told of the end of the
// task with the failure as it is: nobody can know then whether somebody will await it.
func TestAnUnawaitedFailureIsFoundByThoseWhoDecide(t *testing.T) {
	forgets := func(err error) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			async.Execute(ctx, failsWith[int](err), async.Name("report"))
			return nil
		}
	}
	inBubble(t, func(t *testing.T, ctx context.Context) {
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, forgets(errPlanted))
			return nil
		}, async.OnFailure(func(err error) error {
			require.EqualError(t, err, "async: report: nobody awaited it: planted")
			require.ErrorIs(t, err, errPlanted)
			return nil
		})))
		runs := 0
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { runs++; return forgets(async.Final(errPlanted))(ctx) }, async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}))
			return nil
		})
		require.EqualError(t, err, "async: report: nobody awaited it: planted")
		require.Equal(t, 1, runs)
		require.Equal(t, "report: planted", observed(func(o async.ScopeOption) {
			_ = async.Scope(ctx, forgets(errPlanted), o)
		}))
	})
}

// TestAFailureIsNotLostToAWaitThatIsRefusedAsACycle has a task fail just as a
// bare goroutine of its own awaits it.
func TestAFailureIsNotLostToAWaitThatIsRefusedAsACycle(t *testing.T) {
	ctx := asynctest.Context(t)
	for range 10_000 / raceFactor {
		var told error
		var bare sync.WaitGroup
		err := async.Scope(ctx, func(ctx context.Context) error {
			self := make(chan *async.Future[int], 1)
			self <- async.Execute(ctx, func(ctx context.Context) (int, error) {
				f := <-self
				var started atomic.Bool
				bare.Go(func() {
					started.Store(true)
					for range rand.IntN(200) {
						started.Load()
					}
					_, told = f.Wait(ctx)
				})
				for !started.Load() {
					runtime.Gosched()
				}
				for range rand.IntN(400) {
					started.Load()
				}
				return 0, errPlanted
			})
			return nil
		})
		bare.Wait()
		require.ErrorIs(t, errors.Join(err, told), errPlanted)
	}
}
