package async_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// TestAnEchoOfTheCancellationIsNoFailure has a task fail with an error that was
// made while its scope was cancelled because of errPlanted. An echo is not
// listed beside the cause; what is more than one is.
func TestAnEchoOfTheCancellationIsNoFailure(t *testing.T) {
	real := errors.New("a real failure")
	for name, test := range map[string]struct {
		says func(ctx context.Context) error
		echo bool
		text bool // it says more than why it was stopped
	}{
		"ctx.Err":                 {func(ctx context.Context) error { return ctx.Err() }, true, false},
		"the cause":               {context.Cause, true, false},
		"wrapped":                 {func(ctx context.Context) error { return fmt.Errorf("reading: %w", ctx.Err()) }, true, true},
		"wrapped twice over":      {func(ctx context.Context) error { return fmt.Errorf("%w, because: %w", ctx.Err(), context.Cause(ctx)) }, true, true},
		"joined echoes":           {func(ctx context.Context) error { return errors.Join(ctx.Err(), context.Cause(ctx)) }, true, true},
		"of package net/http":     {func(ctx context.Context) error { return &url.Error{Op: "Get", URL: "http://x", Err: ctx.Err()} }, true, true},
		"of package net":          {dialed, true, true},
		"of a derived context":    {derivedErr, true, false},
		"joined with a failure":   {func(ctx context.Context) error { return errors.Join(ctx.Err(), real) }, false, false},
		"wrapped with a failure":  {func(ctx context.Context) error { return fmt.Errorf("%w after %w", real, ctx.Err()) }, false, false},
		"a failure":               {func(context.Context) error { return real }, false, false},
		"a deadline of its own":   {expired, false, false},
		"a time limit of another": {func(context.Context) error { return &async.TimeoutError{Task: "other"} }, false, false},
		"an empty list":           {func(context.Context) error { return emptyList{} }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var said error
				got := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error {
						<-ctx.Done()
						said = test.says(ctx)
						require.Error(t, said)
						return said
					})
					time.Sleep(time.Second)
					return errPlanted
				})
				require.ErrorIs(t, got, errPlanted)
				if test.echo {
					if stopped := stoppedOf(got); len(stopped) > 0 { // it says more than that
						require.Equal(t, []error{said}, stopped)
						require.Equal(t, []error{errPlanted}, got.(*async.ScopeError).Errors)
						require.ErrorContains(t, got, "stopped: ")
					} else {
						require.Equal(t, errPlanted, got, "an echo is not listed")
					}
					require.Equal(t, test.text, len(stoppedOf(got)) > 0)
					return
				}
				var list *async.ScopeError
				require.ErrorAs(t, got, &list)
				require.Equal(t, errPlanted, list.Errors[0], "what decided comes first")
				require.ErrorIs(t, got, said)
			})
		})
	}
}

// TestACancellationFromElsewhereIsAFailure: while its scope lives, a task that
// returns context.Canceled or DeadlineExceeded has failed like any other.
func TestACancellationFromElsewhereIsAFailure(t *testing.T) {
	foreign, cancel := context.WithCancelCause(context.Background())
	cancel(errPlanted)
	for name, test := range map[string]struct {
		says func(ctx context.Context) error
		want error
	}{
		"a foreign context's Err":     {func(context.Context) error { return foreign.Err() }, context.Canceled},
		"a foreign context's Cause":   {func(context.Context) error { return context.Cause(foreign) }, errPlanted},
		"a derived context's":         {derivedErr, context.Canceled},
		"a derived context's expiry":  {expired, context.DeadlineExceeded},
		"an expired Await's":          {expiredAwait, context.DeadlineExceeded},
		"of package net, of its ctx":  {dialed, context.Canceled},
		"of a request, of its ctx":    {requested, context.DeadlineExceeded},
		"of a future that it aborted": {cancelledFuture, errCancelWhy},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				var sibling error
				err := async.Scope(ctx, func(ctx context.Context) error {
					async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); sibling = context.Cause(ctx); return nil })
					async.Go(ctx, test.says)
					return nil
				})
				require.ErrorIs(t, err, test.want)
				require.ErrorIs(t, sibling, test.want, "it has cancelled its sibling")
			})
		})
	}
}

// TestAFailureWhileBeingStoppedIsListedWithoutTheCause: what stopped the scope
// is told once, however many fail while they clean up.
func TestAFailureWhileBeingStoppedIsListedWithoutTheCause(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, f func(context.Context) error){
		"Go":     func(ctx context.Context, f func(context.Context) error) { async.Go(ctx, f) },
		"future": func(ctx context.Context, f func(context.Context) error) { async.Start(ctx, f) },
		"task of a task": func(ctx context.Context, f func(context.Context) error) {
			async.Go(ctx, func(ctx context.Context) error { async.Go(ctx, f); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				lock, disk := errors.New("lock"), errors.New("disk")
				err := async.Scope(ctx, func(ctx context.Context) error {
					start(ctx, func(ctx context.Context) error { <-ctx.Done(); return lock })
					start(ctx, func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Second); return disk })
					time.Sleep(time.Second)
					return errPlanted
				})
				var list *async.ScopeError
				require.ErrorAs(t, err, &list)
				require.Equal(t, []error{errPlanted, lock, disk}, failuresOf(list))
			})
		})
	}
}

// TestAnEchoCountsThoughItsWaiterWasTold of the cancellation before.
func TestAnEchoCountsThoughItsWaiterWasTold(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		require.ErrorIs(t, async.Scope(ctx, func(ctx context.Context) error {
			f := async.Execute(ctx, func(ctx context.Context) (int, error) { <-ctx.Done(); time.Sleep(time.Second); return 0, ctx.Err() })
			_, _ = f.Await(ctx, 0)
			return nil
		}), context.Canceled)
	})
}

// upstream is an error of its own that says it is a cancellation.
type upstream int

func (e upstream) Error() string { return fmt.Sprintf("upstream said %d", int(e)) }

func (e upstream) Is(target error) bool { return target == context.Canceled }

// TestWhatOnlyLooksLikeAnEchoIsKept beside the failure that cancelled the scope
// at 2 s.
func TestWhatOnlyLooksLikeAnEchoIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		says func(ctx context.Context) error
		opts []async.TaskOption
		want error
	}{
		"matches Canceled":                      {func(ctx context.Context) error { time.Sleep(2 * time.Second); <-ctx.Done(); return upstream(499) }, nil, upstream(499)},
		"a derived context that expired before": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil, context.DeadlineExceeded},
		"a Timeout that passed before":          {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, []async.TaskOption{async.Timeout(time.Second)}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				err := async.Scope(ctx, func(ctx context.Context) error {
					start := ctx
					if test.opts == nil && test.want == context.DeadlineExceeded {
						derived, cancel := context.WithTimeout(ctx, time.Second)
						defer cancel()
						start = derived
					}
					async.Go(start, func(ctx context.Context) error {
						err := test.says(ctx)
						time.Sleep(2 * time.Second)
						return fmt.Errorf("upload: %w", err)
					}, test.opts...)
					time.Sleep(2 * time.Second)
					return errPlanted
				})
				require.ErrorIs(t, err, errPlanted)
				require.ErrorIs(t, err, test.want)
			})
		})
	}
}

// emptyList is an error of several that has none.
type emptyList struct{}

func (emptyList) Error() string { return "empty" }

func (emptyList) Unwrap() []error { return nil }

// dialed returns what package net says under a cancelled context.
func dialed(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
	return err
}

// requested returns what package net/http says of a context that expired.
func requested(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, -1)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		err = resp.Body.Close()
	}
	return &url.Error{Op: "Get", URL: r.URL.String(), Err: err}
}

func derivedErr(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx.Err()
}

func expired(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

func expiredAwait(ctx context.Context) error {
	_, err := async.Execute(ctx, obedient(0, 0, nil)).Await(ctx, time.Second)
	return err
}

func cancelledFuture(ctx context.Context) error {
	f := async.Execute(ctx, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
	f.Cancel(errCancelWhy)
	_, err := f.Wait(ctx)
	return err
}

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
	beside := func(err error) func(ctx context.Context) error {
		return func(ctx context.Context) error { async.Go(ctx, say); <-ctx.Done(); return err }
	}
	child := func(ctx context.Context) error { async.Go(ctx, say); return nil }
	value := func(ctx context.Context) (int, error) { return 0, say(ctx) }
	item := func(ctx context.Context, _ int) (int, error) { return 0, say(ctx) }
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
		"nested go":    func(ctx context.Context) error { async.Go(ctx, child); return nil },
		"nested go beside a failure": func(ctx context.Context) error {
			async.Go(ctx, beside(errSecond))
			return nil
		},
		"start beside a failure": func(ctx context.Context) error {
			async.Start(ctx, beside(errSecond))
			return nil
		},
		"awaited and returned": func(ctx context.Context) error {
			_, err := async.Start(ctx, say).Join(ctx)
			return err
		},
		"restart":            func(ctx context.Context) error { async.Go(ctx, say, async.Restart(pol)); return nil },
		"restart second run": func(ctx context.Context) error { async.Go(ctx, failsFirst(say), async.Restart(pol)); return nil },
		"restart child":      func(ctx context.Context) error { async.Go(ctx, child, async.Restart(pol)); return nil },
		"restart child beside a failure": func(ctx context.Context) error {
			async.Go(ctx, beside(errSecond), async.Restart(pol))
			return nil
		},
		"restart child beside a nil": func(ctx context.Context) error {
			async.Go(ctx, beside(nil), async.Restart(pol))
			return nil
		},
		"restart start child beside a failure": func(ctx context.Context) error {
			async.Start(ctx, beside(errSecond), async.Restart(pol))
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
			_, err := async.Retry(ctx, async.Every(time.Second), value)
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
			_, err := async.Retry(ctx, async.Every(time.Second), value, async.Name("R"))
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
			for _, err := range async.Map(ctx, slices.Values([]int{1}), item) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"forkjoin": func(ctx context.Context) error { async.ForkJoin(ctx, []int{1}, item); return nil },
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
		"settle": func(ctx context.Context) error { async.Settle(ctx, value); return nil },
		"all":    func(ctx context.Context) error { async.All(ctx, value); return nil },
		"any":    func(ctx context.Context) error { async.Any(ctx, value); return nil },
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
				async.Go(ctx, beside(errSecond))
				return nil
			}, async.OnFailure(func(err error) error { return err }))
		},
		"onfailure other": func(ctx context.Context) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, child)
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
