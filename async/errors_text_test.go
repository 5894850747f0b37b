package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

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
