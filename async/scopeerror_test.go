package async_test

import (
	"context"
	"errors"
	"fmt"
	"go/scanner"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
)

func TestTheFirstErrorOfAScopeIsTheOneThatDecided(t *testing.T) {
	ctx := asynctest.Context(t)
	for range 20_000 / raceFactor {
		var scope context.Context
		var cause error
		var gate sync.WaitGroup
		gate.Add(1)
		err := async.Scope(ctx, func(ctx context.Context) error {
			scope = ctx
			for range 2 {
				mine := errors.New("one of two")
				async.Go(ctx, func(context.Context) error { gate.Wait(); return mine })
			}
			async.OnExit(ctx, func(context.Context, error) error { cause = context.Cause(scope); return nil })
			gate.Done()
			return nil
		})
		if list := (*async.ScopeError)(nil); errors.As(err, &list) {
			require.Same(t, cause, list.Errors[0])
		}
	}
}

func TestTheCauseIsToldOnceThoughSiblingsFailAfterIt(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		err := async.Scope(ctx, func(ctx context.Context) error {
			for range 3 {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return io.EOF })
			}
			return errPlanted
		})
		var list *async.ScopeError
		require.ErrorAs(t, err, &list)
		require.Equal(t, []error{errPlanted, io.EOF}, list.Errors, "each error is listed once")
		require.NoError(t, list.Cause, "it is one of the errors")
	})
}

// TestAnErrorThatCannotBeComparedIsReportedOnce as the failure itself.
func TestAnErrorThatCannotBeComparedIsReportedOnce(t *testing.T) {
	list := scanner.ErrorList{&scanner.Error{Msg: "bad"}}
	for name, body := range map[string]func(ctx context.Context) error{
		"of a task": func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { return list })
			return nil
		},
		"of a body": func(context.Context) error { return list },
		"and echoed": func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
			return list
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.IsType(t, list, async.Scope(asynctest.Context(t), body))
		})
	}
}

func TestPanicsBeyondTheListAreCountedOnce(t *testing.T) {
	err := panicOrError(func() error {
		return async.Scope(context.Background(), func(ctx context.Context) error {
			start := make(chan struct{})
			for i := range 100 {
				async.Go(ctx, func(context.Context) error { <-start; panic(i) })
			}
			close(start)
			return nil
		})
	})
	var p *async.PanicError
	require.ErrorAs(t, err, &p)
	require.Len(t, p.Also, 32)
	require.Contains(t, p.Error(), "and 67 more")
}

// TestAScopeErrorSaysWhyTheScopeWasCancelled unless that is one of its errors.
func TestAScopeErrorSaysWhyTheScopeWasCancelled(t *testing.T) {
	parent, failed, hook := errors.New("parent"), errors.New("failed"), errors.New("hook")
	waits := func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) }
	for name, test := range map[string]struct {
		body  func(ctx context.Context) error
		opts  []async.ScopeOption
		cause error
		errs  []error
	}{
		"the parent, body waits":     {waits, nil, parent, nil},
		"the parent, a task waits":   {func(ctx context.Context) error { async.Go(ctx, waits); return nil }, nil, parent, nil},
		"the parent, a future waits": {func(ctx context.Context) error { async.Start(ctx, waits); return nil }, nil, parent, nil},
		"the parent, and a failure": {func(ctx context.Context) error {
			<-ctx.Done()
			return failed
		}, nil, parent, []error{failed}},
		"the parent, and a failure below": {func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return failed })
				return waits(ctx)
			})
			return waits(ctx)
		}, nil, parent, []error{failed}},
		"the parent, scopes in scopes": {func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				return async.Scope(ctx, func(ctx context.Context) error { <-ctx.Done(); return failed })
			})
		}, nil, parent, []error{failed}},
		"the parent, and a hook": {func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return hook })
			return waits(ctx)
		}, nil, parent, []error{hook}},
		"its own Timeout": {waits, []async.ScopeOption{async.Timeout(time.Millisecond)}, context.DeadlineExceeded, nil},
		"a failure, and a hook": {func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return hook })
			return failed
		}, nil, nil, []error{failed, hook}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(time.Second, func() { cancel(parent) })
				err := async.Scope(ctx, test.body, test.opts...)
				var list *async.ScopeError
				require.ErrorAs(t, err, &list)
				require.Equal(t, test.errs, list.Errors)
				require.Equal(t, test.cause == nil, list.Cause == nil)
				require.ErrorIs(t, list.Cause, test.cause)
				for _, want := range append(test.errs, test.cause) {
					if want != nil {
						require.ErrorIs(t, err, want)
					}
				}
				require.Equal(t, test.cause != nil, errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
			})
		})
	}
}

func TestAScopeThatWasStoppedForNothingIsNil(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		require.NoError(t, async.Scope(ctx, func(ctx context.Context) error {
			cancel()
			async.Go(ctx, func(context.Context) error { return nil })
			return nil
		}), "nothing was kept from being done")
	})
}

// A fussy error cannot be compared.
type fussy struct{ fields any }

func (fussy) Error() string { return "bad fields" }

// TestUsersErrorsDoNoHarm: those that cannot be compared, or whose methods
// panic.
func TestUsersErrorsDoNoHarm(t *testing.T) {
	for name, bad := range map[string]error{
		"a slice in a field": fussy{[]string{"name"}},
		"a map in a field":   fussy{map[string]int{}},
		"a func in a field":  fussy{func() {}},
		"Is panics":          rude{is: true},
		"Unwrap panics":      rude{unwrap: true},
		"joined":             errors.Join(fussy{[]int{1}}, rude{is: true}),
		"wrapped":            fmt.Errorf("wrapped: %w", fussy{[]int{1}}),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				echoed := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, echoed)
					async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, echoed); return echoed(ctx) })
					_, _ = async.NewPromise[int](ctx)
					async.Race(ctx, func(ctx context.Context) (int, error) { return 0, echoed(ctx) })
					f := async.Start(ctx, echoed)
					async.Go(ctx, func(ctx context.Context) error {
						_, err := f.Await(context.WithoutCancel(ctx), 0)
						return err
					})
					return bad
				})
				require.IsType(t, bad, err)

				f := async.Start(ctx, func(ctx context.Context) error { <-ctx.Done(); return bad })
				f.Cancel(bad)
				_, err = f.Wait(ctx)
				require.Error(t, err)
				require.Error(t, async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return bad })
					return errPlanted
				}))
			})
		})
	}
}

// rude is an error whose methods panic.
type rude struct{ is, unwrap bool }

func (rude) Error() string { return "rude" }
func (e rude) Is(error) bool {
	if e.is {
		panic("Is")
	}
	return false
}
func (e rude) Unwrap() error {
	if e.unwrap {
		panic("Unwrap")
	}
	return nil
}

// A curious cause uses the scope whenever it is asked what it is.
type curious struct{ ask func() }

func (*curious) Error() string   { return "curious" }
func (c *curious) Is(error) bool { c.ask(); return false }

func TestUsersErrorsAreAskedWithoutALock(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		var inner context.Context
		asked := 0
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				inner = ctx
				async.Go(ctx, func(ctx context.Context) error { return async.Sleep(ctx, time.Hour) })
				<-ctx.Done()
				return context.Cause(ctx)
			})
			time.Sleep(time.Second)
			return &curious{func() {
				asked++
				async.NewPromise[int](inner)
				_ = inner.Err()
			}}
		})
		require.IsType(t, (*curious)(nil), err)
		require.ErrorIs(t, err, err)
	})
}

func TestTheFirstCauseIsSeenByAllBelow(t *testing.T) {
	outer, boom := errors.New("outer"), errors.New("boom")
	for range 200 {
		ctx, cancel := context.WithCancelCause(context.Background())
		var wrong atomic.Int64
		var err error
		_ = async.Scope(ctx, func(ctx context.Context) error {
			err = async.Scope(ctx, func(ctx context.Context) error {
				var ready sync.WaitGroup
				ready.Add(100)
				for i := range 100 {
					async.Go(ctx, func(ctx context.Context) error {
						done := ctx.Done()
						ready.Done()
						<-done
						if i == 0 {
							cancel(outer)
						}
						if context.Cause(ctx) == outer {
							wrong.Add(1)
						}
						return ctx.Err()
					})
				}
				ready.Wait()
				return boom
			})
			return nil
		})
		require.Equal(t, boom, err)
		require.Zero(t, wrong.Load(), "tasks saw another cause than their scope's")
	}
}

// TestNoCancellationIsMissed: a scope is cancelled while tasks in it start,
// look at their contexts for the first time, and wait.
func TestNoCancellationIsMissedByALateLook(t *testing.T) {
	root := asynctest.Context(t)
	for i := range 300 {
		err := async.Scope(root, func(ctx context.Context) error {
			for j := range 8 {
				async.Go(ctx, func(ctx context.Context) error {
					switch (i + j) % 5 {
					case 0:
						<-ctx.Done()
					case 1:
						derived, cancel := context.WithCancel(ctx)
						defer cancel()
						<-derived.Done()
						require.ErrorIs(t, context.Cause(derived), errCancelBoom)
					case 2:
						never, _ := async.NewPromise[int](root)
						_, err := never.Wait(ctx)
						require.ErrorIs(t, err, errCancelBoom)
					case 3:
						async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
					case 4:
						called := make(chan struct{})
						context.AfterFunc(ctx, func() { close(called) })
						<-called
					}
					return nil
				})
			}
			async.Go(ctx, func(context.Context) error { return errCancelBoom })
			return nil
		})
		require.ErrorIs(t, err, errCancelBoom)
	}
}

// TestAProducerStartedInACancelledScopeStillClosesItsChannel: were it skipped,
// the consumer would wait for ever.
func TestAProducerStartedInACancelledScopeStillClosesItsChannel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("too late"))
	err := async.Scope(ctx, func(ctx context.Context) error {
		c := make(chan int)
		async.Go(ctx, func(ctx context.Context) error {
			defer close(c)
			return context.Cause(ctx)
		})
		for range c {
		}
		return nil
	})
	require.ErrorContains(t, err, "too late")
	require.ErrorIs(t, err, context.Canceled)
}

// TestTheTextsOfErrors: the package first, each name once, one error a line, and
// what is nested is indented.
func TestTheTextsOfErrors(t *testing.T) {
	one, two := errors.New("disk full"), errors.New("no route\nto host")
	timeout := &async.TimeoutError{Task: "fetch", Limit: 1500 * time.Millisecond, Waited: 1500_123_456}
	panicked := &async.PanicError{Value: "boom", Task: "fetch", Stack: []byte("goroutine 7 [running]:\nmain.f()\n\t/f.go:3\n")}
	scope := func(name string, cause error, errs ...error) error {
		return &async.ScopeError{Scope: name, Cause: cause, Errors: errs}
	}
	for _, tc := range []struct {
		err  error
		want string
	}{
		{timeout, "async: fetch: context deadline exceeded (limit 1.5s, waited 1.5s)"},
		{&async.TimeoutError{Task: "fetch", Limit: 7, Waited: 1234}, "async: fetch: context deadline exceeded (limit 7ns, waited 1.23µs)"},
		{&async.TimeoutError{Task: "fetch", Limit: time.Hour, Waited: time.Hour + 123_456_789}, "async: fetch: context deadline exceeded (limit 1h0m0s, waited 1h0m0s)"},
		{&async.TimeoutError{Task: "fetch", Limit: -1}, "async: fetch: context deadline exceeded (the limit had passed before)"},
		{&async.TimeoutError{}, "async: context deadline exceeded (the limit had passed before)"},

		{scope("deploy", nil, one), "async: deploy: disk full"},
		{scope("deploy", nil, one, two), "async: deploy: disk full\n\tno route\n\tto host"},
		{scope("deploy", errors.New("interrupt")), "async: deploy: interrupt"},
		{scope("deploy", errors.New("interrupt"), one), "async: deploy: interrupt\n\tdisk full"},
		{scope("deploy", timeout, one), "async: deploy: fetch: context deadline exceeded (limit 1.5s, waited 1.5s)\n\tdisk full"},
		{scope("fetch", timeout, one), "async: fetch: context deadline exceeded (limit 1.5s, waited 1.5s)\n\tdisk full"},
		{scope("deploy", nil, scope("deploy", nil, one, two), one), "async: deploy: disk full\n\t\tno route\n\t\tto host\n\tdisk full"},
		{scope("deploy", nil, scope("copy", nil, one, two), one), "async: deploy: copy: disk full\n\t\tno route\n\t\tto host\n\tdisk full"},
		{scope("deploy", nil, one, scope("deploy/copy", nil, one, two)), "async: deploy: disk full\n\tcopy: disk full\n\t\tno route\n\t\tto host"},
		{scope("deploy", panicked, one), "async: deploy: panic in fetch: boom\n\tdisk full"},
		{scope("fetch", panicked, one), "async: fetch: panic: boom\n\tdisk full"},
		{scope("deploy", nil, panicked), "async: deploy: panic in fetch: boom"},
		{scope("", nil, one), "async: disk full"},
		{&async.ScopeError{Scope: "deploy", Errors: []error{one}, Dropped: 3}, "async: deploy: disk full\n\tand 3 more"},
		{scope("deploy", nil, &async.TimeoutError{Task: "exit hook of deploy", Limit: time.Second, Waited: time.Second}), "async: deploy: exit hook: context deadline exceeded (limit 1s, waited 1s)"},
		{scope("deploy", nil, fmt.Errorf("copying: %w", scope("deploy", nil, one))), "async: deploy: copying: async: deploy: disk full"}, // a user's own words

		{&async.StragglerError{Scope: "deploy", Left: []async.Straggler{{Task: "copy"}}}, "async: deploy: 1 task still running, not told to stop\n\tcopy (queued)"},
		{
			&async.StragglerError{Scope: "deploy", Cause: timeout, More: 9, Left: []async.Straggler{
				{Task: "copy", State: async.StateAborting, Stack: "goroutine 7 [sleep]:\nmain.f()\n\t/f.go:3\n"}, {Task: "move", State: async.StateRunning},
			}},
			"async: deploy: 11 tasks still running after being told to stop: fetch: context deadline exceeded (limit 1.5s, waited 1.5s)" +
				"\n\tcopy (aborting)\n\t\tgoroutine 7 [sleep]:\n\t\tmain.f()\n\t\t\t/f.go:3\n\tmove (running)\n\tand 9 more",
		},
		{&async.StragglerError{Scope: "deploy", Cause: panicked, More: 1}, "async: deploy: 1 task still running after being told to stop: panic in fetch: boom\n\tand 1 more"},

		{panicked, "async: panic in fetch: boom"},
		{&async.WatchdogError{Task: "build", Err: async.ErrNoBeat}, "async: watchdog of build: no heartbeat"},
		{&async.WatchdogError{Task: "build", Err: timeout}, "async: watchdog of build: fetch: context deadline exceeded (limit 1.5s, waited 1.5s)"},
		{scope("build", nil, &async.WatchdogError{Task: "build", Err: one}), "async: build: watchdog: disk full"},
		{&async.RejectedError{Task: "build", Err: one}, "async: build: rejected by its executor: disk full"},
		{&async.PollError[int]{Attempts: 1, Err: one}, "async: no answer after 1 attempt; last error: disk full"},
	} {
		require.Equal(t, tc.want, tc.err.Error())
	}
}

// TestTheTextsOfPolls in one sentence each, with the name of the task.
func TestTheTextsOfPolls(t *testing.T) {
	for want, probe := range map[string]func(n int) (string, bool, error){
		"async: invoice: no answer after 3 attempts; last value: unpaid": func(int) (string, bool, error) { return "unpaid", false, nil },
		"async: invoice: no answer after 2 attempts; last error: boom": func(n int) (string, bool, error) {
			if n < 2 {
				return "", false, nil
			}
			return "", false, errors.New("boom")
		},
		"async: invoice: no answer after 3 attempts; last error: later; last value: unpaid": func(int) (string, bool, error) {
			return "unpaid", false, async.Again(errors.New("later"))
		},
		"async: invoice: no answer after 1 attempt: context deadline exceeded (limit 1m0s, waited 1m0s)": func(int) (string, bool, error) {
			return "", false, async.AgainAfter(time.Hour, nil)
		},
	} {
		inBubble(t, func(t *testing.T, ctx context.Context) {
			n := 0
			_, err := async.Poll(ctx, async.Every(time.Second), func(context.Context) (string, bool, error) {
				n++
				return probe(n)
			}, async.Attempts(3), async.Name("invoice"), async.Timeout(time.Minute)).Await(ctx, 0)
			require.EqualError(t, err, want)
		})
	}
}

// TestWhatFailsInAScopeIsToldWithEachNameOnce however deep it is nested.
func TestWhatFailsInAScopeIsToldWithEachNameOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		fails := func(text string) func(context.Context) error {
			return func(context.Context) error { return errors.New(text) }
		}
		err := async.Scope(ctx, func(ctx context.Context) error {
			async.OnExit(ctx, func(context.Context, error) error { return errors.New("hook") })
			return async.Scope(ctx, func(ctx context.Context) error {
				async.OnExit(ctx, func(ctx context.Context, _ error) error { return errors.New("inner hook") })
				return fails("first")(ctx)
			}, async.Name("deploy"))
		}, async.Name("deploy"))
		require.EqualError(t, err, "async: deploy: first\n\t\tinner hook\n\thook")
		require.Equal(t, 1, strings.Count(err.Error(), "deploy"))
	})
}

// TestAFailureInAListHasItsPath: the names that tasks were given. A single failure stays
// itself, and what says its name already says it once.
func TestAFailureInAListHasItsPath(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		fails := func(text string) func(context.Context) error {
			return func(context.Context) error { return errors.New(text) }
		}
		err := async.Scope(ctx, func(ctx context.Context) error {
			other := context.WithoutCancel(ctx)
			async.Go(other, func(ctx context.Context) error {
				async.Go(ctx, fails("connection refused"), async.Name("db"))
				async.Go(ctx, fails("no route"), async.Name("cache"))
				return nil
			}, async.Name("user"))
			async.Go(other, func(context.Context) error { runtime.Goexit(); return nil }, async.Name("exits"))
			return nil
		}, async.Name("request"))
		for _, want := range []string{"user: ", "db: connection refused", "cache: no route", "exits: task called runtime.Goexit"} {
			require.ErrorContains(t, err, want)
		}
		require.Equal(t, 1, strings.Count(err.Error(), "user"), err)
		require.EqualError(t, async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, fails("disk full"), async.Name("save"))
			return nil
		}), "disk full")

		abort := async.OnAbort(func(context.Context, error) error { return errors.New("no signal sent") })
		err = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, waitHook, async.Name("tail"), abort)
			time.Sleep(time.Second)
			return errPlanted
		})
		require.ErrorContains(t, err, "abort hook of tail: no signal sent")
	})
}
