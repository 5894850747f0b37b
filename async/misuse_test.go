package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

type (
	intTask   = func(context.Context) (int, error)
	misuse    = map[string]func(ctx context.Context)
	intFuture = async.Future[int]
)

// none is the ctx of who has none.
var none context.Context

func giveOne(context.Context) (int, error) { return 1, nil }

// misuses gives every function of the package nothing where it needs something:
// by its name, and by what is nil.
func misuses() map[string]misuse {
	every := async.Every(time.Second)
	item := func(context.Context, int) error { return nil }
	mapped := func(context.Context, int) (int, error) { return 0, nil }
	probe := func(context.Context) (int, bool, error) { return 0, true, nil }
	items := slices.Values([]int{1})
	tasks := slices.Values([]intTask{giveOne})
	drain := func(seq iter.Seq2[int, error]) {
		for range seq {
		}
	}
	return map[string]misuse{
		"Scope": {
			"body":   func(ctx context.Context) { _ = async.Scope(ctx, nil) },
			"option": func(ctx context.Context) { _ = async.Scope(ctx, nothing, nil) },
			"ctx":    func(context.Context) { _ = async.Scope(none, nothing) },
		},
		"Shield": {
			"f":   func(ctx context.Context) { _ = async.Shield(ctx, 1, nil) },
			"ctx": func(context.Context) { _ = async.Shield(none, 1, nothing) },
		},
		"Go": {
			"task":   func(ctx context.Context) { async.Go(ctx, nil) },
			"option": func(ctx context.Context) { async.Go(ctx, nothing, async.Name("n"), nil) },
			"ctx":    func(context.Context) { async.Go(none, nothing) },
		},
		"Fail": {
			"err": func(ctx context.Context) { async.Fail(ctx, nil) },
			"ctx": func(context.Context) { async.Fail(none, errPlanted) },
		},
		"Execute": {
			"handler": func(ctx context.Context) { async.Execute[int](ctx, nil) },
			"option":  func(ctx context.Context) { async.Execute(ctx, giveOne, nil) },
			"ctx":     func(context.Context) { async.Execute(none, giveOne) },
		},
		"Start": {
			"f":      func(ctx context.Context) { async.Start(ctx, nil) },
			"option": func(ctx context.Context) { async.Start(ctx, nothing, nil) },
			"ctx":    func(context.Context) { async.Start(none, nothing) },
		},
		"Detach": {
			"task":   func(ctx context.Context) { async.Detach(ctx, "name", nil) },
			"name":   func(ctx context.Context) { async.Detach(ctx, "", nothing) },
			"option": func(ctx context.Context) { async.Detach(ctx, "name", nothing, nil) },
			"ctx":    func(context.Context) { async.Detach(none, "name", nothing) },
		},
		"NewGroup": {
			"option": func(ctx context.Context) { async.NewGroup(ctx, nil) },
			"ctx":    func(context.Context) { async.NewGroup(none) },
		},
		"Open": {
			"option": func(ctx context.Context) { async.Open(ctx, nil) },
			"ctx":    func(context.Context) { async.Open(none) },
		},
		"Group.Go": {
			"f":      func(ctx context.Context) { _ = async.NewGroup(ctx).Go(nil) },
			"option": func(ctx context.Context) { _ = async.NewGroup(ctx).Go(nothing, nil) },
		},
		"Group.Stop": {"ctx": func(ctx context.Context) { _ = async.NewGroup(ctx).Stop(none, nil) }},
		"Group.Wait": {"ctx": func(ctx context.Context) { _ = async.NewGroup(ctx).Wait(none) }},
		"Restart": {
			"in": func(context.Context) { async.Restart(async.RestartPolicy{}) },
		},
		"NewPromise": {
			"option": func(ctx context.Context) { async.NewPromise[int](ctx, nil) },
			"ctx":    func(context.Context) { async.NewPromise[int](none) },
		},
		"Of": {
			"ctx": func(context.Context) { async.Of(none) },
		},
		"OnExit": {
			"f":   func(ctx context.Context) { async.OnExit(ctx, nil) },
			"ctx": func(context.Context) { async.OnExit(none, func(context.Context, error) error { return nil }) },
		},
		"Retry": {
			"f":        func(ctx context.Context) { _, _ = async.Retry[int](ctx, every, nil) },
			"interval": func(ctx context.Context) { _, _ = async.Retry(ctx, nil, answer) },
			"option":   func(ctx context.Context) { _, _ = async.Retry(ctx, every, answer, nil) },
			"ctx":      func(context.Context) { _, _ = async.Retry(none, every, answer) },
		},
		"Poll": {
			"probe":    func(ctx context.Context) { async.Poll[int](ctx, every, nil) },
			"interval": func(ctx context.Context) { async.Poll(ctx, nil, probe) },
			"option":   func(ctx context.Context) { async.Poll(ctx, every, probe, nil) },
			"ctx":      func(context.Context) { async.Poll(none, every, probe) },
		},
		"Repeat": {
			"f":        func(ctx context.Context) { async.Repeat(ctx, every, nil) },
			"interval": func(ctx context.Context) { async.Repeat(ctx, nil, nothing) },
			"option":   func(ctx context.Context) { async.Repeat(ctx, every, nothing, nil) },
			"ctx":      func(context.Context) { async.Repeat(none, every, nothing) },
		},
		"Watch": {
			"handler":  func(ctx context.Context) { async.Watch[int](ctx, nil, every, nothing) },
			"interval": func(ctx context.Context) { async.Watch(ctx, giveOne, nil, nothing) },
			"check":    func(ctx context.Context) { async.Watch(ctx, giveOne, every, nil) },
			"option":   func(ctx context.Context) { async.Watch(ctx, giveOne, every, nothing, nil) },
			"ctx":      func(context.Context) { async.Watch(none, giveOne, every, nothing) },
		},
		"ForkJoin": {
			"f":      func(ctx context.Context) { async.ForkJoin[int, int](ctx, []int{1}, nil) },
			"option": func(ctx context.Context) { async.ForkJoin(ctx, []int{1}, mapped, nil) },
			"ctx":    func(context.Context) { async.ForkJoin(none, []int{1}, mapped) },
		},
		"ForEach": {
			"items":  func(ctx context.Context) { _ = async.ForEach(ctx, nil, item) },
			"f":      func(ctx context.Context) { _ = async.ForEach(ctx, items, nil) },
			"option": func(ctx context.Context) { _ = async.ForEach(ctx, items, item, nil) },
			"ctx":    func(context.Context) { _ = async.ForEach(none, items, item) },
		},
		"Map": {
			"items":  func(ctx context.Context) { async.Map(ctx, nil, mapped) },
			"f":      func(ctx context.Context) { async.Map[int, int](ctx, items, nil) },
			"option": func(ctx context.Context) { drain(async.Map(ctx, items, mapped, nil)) },
			"ctx":    func(context.Context) { drain(async.Map(none, items, mapped)) },
		},
		"AsCompleted": {
			"tasks":  func(ctx context.Context) { async.AsCompleted[int](ctx, nil) },
			"option": func(ctx context.Context) { async.AsCompleted(ctx, tasks, nil)(nil) },
			"ctx":    func(context.Context) { async.AsCompleted(none, tasks)(nil) },
		},
		"All":    {"task": func(ctx context.Context) { async.All[int](ctx, nil) }, "ctx": func(context.Context) { async.All(none, giveOne) }},
		"Settle": {"task": func(ctx context.Context) { async.Settle[int](ctx, nil) }, "ctx": func(context.Context) { async.Settle(none, giveOne) }},
		"Race":   {"task": func(ctx context.Context) { async.Race[int](ctx, nil) }, "ctx": func(context.Context) { async.Race(none, giveOne) }},
		"Any":    {"task": func(ctx context.Context) { async.Any[int](ctx, nil) }, "ctx": func(context.Context) { async.Any(none, giveOne) }},
		"Hedge":  {"task": func(ctx context.Context) { async.Hedge[int](ctx, 1, nil) }, "ctx": func(context.Context) { async.Hedge(none, 1, giveOne) }},
		"Quorum": {"task": func(ctx context.Context) { async.Quorum[int](ctx, 1, nil) }, "ctx": func(context.Context) { async.Quorum(none, 1, giveOne) }},
		"Until": {
			"wins": func(ctx context.Context) { async.Until(ctx, nil, giveOne) },
			"task": func(ctx context.Context) { async.Until(ctx, func(async.Result[int]) bool { return true }, nil) },
			"ctx":  func(context.Context) { async.Until(none, func(async.Result[int]) bool { return true }, giveOne) },
		},
		"Discarding": {
			"f":    func(context.Context) { async.Discarding(nil, giveOne) },
			"task": func(context.Context) { async.Discarding(func(int) {}, nil) },
		},
		"Future.Await": {
			"ctx":                     func(context.Context) { _, _ = pending().Await(none, 0) },
			"ctx, when it is settled": func(context.Context) { _, _ = async.Completed(1, nil).Await(none, 0) },
		},
		"Future.Wait": {
			"ctx":                     func(context.Context) { _, _ = pending().Wait(none) },
			"ctx, when it is settled": func(context.Context) { _, _ = async.Completed(1, nil).Wait(none) },
		},
		"Future.Join": {
			"ctx":                     func(context.Context) { _, _ = pending().Join(none) },
			"ctx, when it is settled": func(context.Context) { _, _ = async.Completed(1, nil).Join(none) },
		},
		"AwaitAll": {
			"ctx":                     func(context.Context) { async.AwaitAll(none, 0, pending()) },
			"ctx, when it is settled": func(context.Context) { async.AwaitAll(none, 0, async.Completed(1, nil)) },
		},
		"Resolve": {
			"Promise": func(context.Context) { (*async.Promise[int])(nil).Resolve(1) },
			"more":    func(context.Context) { new(async.Promise[int]).Resolve(1) },
		},
		"Reject": {
			"Promise": func(context.Context) { (*async.Promise[int])(nil).Reject(errPlanted) },
			"more":    func(context.Context) { new(async.Promise[int]).Reject(errPlanted) },
		},
		"Sleep":     {"ctx": func(context.Context) { _ = async.Sleep(none, 1) }},
		"Shutdown":  {"ctx": func(context.Context) { _ = async.Shutdown(none) }},
		"Beat":      {"ctx": func(context.Context) { async.Beat(none) }},
		"On":        {"ex": func(context.Context) { async.On(nil) }},
		"OnAbort":   {"f": func(context.Context) { async.OnAbort(nil) }},
		"OnDiscard": {"f": func(context.Context) { async.OnDiscard[int](nil) }},
		"OnFailure": {"f": func(context.Context) { async.OnFailure(nil) }},
		"OnPanic":   {"f": func(context.Context) { async.OnPanic(nil) }},
		"OnStall":   {"f": func(context.Context) { async.OnStall(1, nil) }},
		"StopOn":    {"ch": func(context.Context) { async.StopOn(nil, errPlanted) }},
		"StopWith":  {"other": func(context.Context) { async.StopWith(none) }},
		"Observe":   {"o": func(context.Context) { async.Observe(nil) }, "func": func(context.Context) { async.Observe(async.ObserverFunc(nil)) }},
		"Jitter":    {"in": func(context.Context) { async.Jitter(1, nil) }},
	}
}

// pending returns a future of the process that does not settle.
func pending() *intFuture {
	f, _ := async.NewPromise[int](context.Background())
	return f
}

// TestWhoGivesNothingIsToldWhatToDo, and which function he called.
func TestWhoGivesNothingIsToldWhatToDo(t *testing.T) {
	for function, calls := range misuses() {
		for what, call := range calls {
			t.Run(function+" without "+what, func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					err := async.Scope(ctx, func(ctx context.Context) error {
						value := func() (value any) {
							defer func() { value = recover() }()
							call(ctx)
							return nil
						}()
						text, _ := value.(string)
						require.Regexp(t, `^async: `+regexp.QuoteMeta(function)+`\b.*nil.*: |^async: Detach without a name: `, text, "%v", value)
						return nil
					})
					require.NoError(t, err)
				})
			})
		}
	}
}

// TestEveryFunctionThatMayBeGivenNothingIsMisused in the table above.
func TestEveryFunctionThatMayBeGivenNothingIsMisused(t *testing.T) {
	api, err := os.ReadFile("../api/async.txt")
	require.NoError(t, err)
	table := misuses()
	for line := range strings.Lines(string(api)) {
		name := regexp.MustCompile(`^func (\w+)`).FindStringSubmatch(line)
		if name == nil || !regexp.MustCompile(`ctx context|func\(|Interval[,)]|Observer\)|Executor\)`).MatchString(line[len(name[0]):]) {
			continue
		}
		require.Contains(t, table, name[1], "%s", line)
	}
}

// nilErrors are what a function returns that declares its result as one of our
// types, and returns nil.
var nilErrors = []error{
	(*async.ScopeError)(nil), (*async.PanicError)(nil), (*async.TimeoutError)(nil), (*async.StragglerError)(nil),
	(*async.WatchdogError)(nil), (*async.RejectedError)(nil), (*async.RestartError)(nil), (*async.PollError[int])(nil),
}

// zeroErrors are those with nothing in them.
var zeroErrors = []error{
	new(async.ScopeError), new(async.PanicError), new(async.TimeoutError), new(async.StragglerError),
	new(async.WatchdogError), new(async.RejectedError), new(async.RestartError), new(async.PollError[int]),
}

// TestMethodsOfANilErrorDoNoHarm and its text says that it is nil.
func TestMethodsOfANilErrorDoNoHarm(t *testing.T) {
	for _, err := range nilErrors {
		t.Run(fmt.Sprintf("%T", err), func(t *testing.T) {
			require.Regexp(t, `^async: a nil \*\w+Error(\[int\])?$`, err.Error())
			require.NotErrorIs(t, err, io.EOF)
			require.NotErrorIs(t, err, context.Canceled)
			require.NotErrorAs(t, err, new(io.Reader))
			if e, ok := err.(interface{ Timeout() bool }); ok {
				e.Timeout()
			}
		})
	}
	for _, err := range zeroErrors {
		t.Run(fmt.Sprintf("zero %T", err), func(t *testing.T) {
			require.Regexp(t, `^async: `, err.Error())
			require.NotErrorIs(t, err, io.EOF)
			require.NotErrorAs(t, err, new(io.Reader))
		})
	}
}

// TestANilErrorIsAFailureLikeAnother wherever it is returned or is a cause.
func TestANilErrorIsAFailureLikeAnother(t *testing.T) {
	uses := map[string]func(ctx context.Context, bad error) error{
		"of a body": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(context.Context) error { return bad })
		},
		"of a Go task": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { return bad })
				return nil
			}, async.Name("deploy"))
		},
		"of a Go task in a cancelled scope": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return bad })
				return errPlanted
			})
		},
		"of a daemon": func(ctx context.Context, bad error) error {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { <-ctx.Done(); return bad }, async.Daemon())
				return nil
			})
			return bad
		},
		"of a future": func(ctx context.Context, bad error) error {
			_, err := async.Start(ctx, func(context.Context) error { return bad }).Await(ctx, 0)
			return err
		},
		"of a future that nobody awaits": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Start(ctx, func(context.Context) error { return bad })
				return nil
			})
		},
		"of a cancelled future": func(ctx context.Context, bad error) error {
			f := async.Start(ctx, stopsWith(bad))
			f.Cancel(errPlanted)
			_, err := f.Await(ctx, 1)
			return err
		},
		"as the cause of Cancel": func(ctx context.Context, bad error) error {
			f := async.Start(ctx, joinUntilDone)
			f.Cancel(bad)
			_, err := f.Await(ctx, 1)
			return err
		},
		"as the cause of a ctx": func(ctx context.Context, bad error) error {
			ctx, cancel := context.WithCancelCause(ctx)
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, joinUntilDone)
				cancel(bad)
				return nil
			}, async.Timeout(1e9))
		},
		"of a probe": func(ctx context.Context, bad error) error {
			_, err := async.Repeat(ctx, async.Every(1), func(context.Context) error { return bad }).Await(ctx, 0)
			return err
		},
		"of runs": func(ctx context.Context, bad error) error {
			_, err := async.Start(ctx, func(context.Context) error { return bad },
				async.Restart(async.RestartPolicy{Interval: async.Every(1), Attempts: 2})).Await(ctx, 0)
			return err
		},
		"of an exit hook": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.OnExit(ctx, func(context.Context, error) error { return bad })
				return errPlanted
			})
		},
		"of a promise": func(ctx context.Context, bad error) error {
			f, p := async.NewPromise[int](ctx)
			p.Reject(bad)
			_, err := f.Await(ctx, 0)
			return err
		},
		"of contenders": func(ctx context.Context, bad error) error {
			_, err := async.Any(ctx, func(context.Context) (int, error) { return 0, bad }, func(context.Context) (int, error) { return 0, bad }).Await(ctx, 0)
			return err
		},
		"of items": func(ctx context.Context, bad error) error {
			return async.Scope(ctx, func(ctx context.Context) error {
				async.ForkJoin(ctx, []int{1, 2}, func(context.Context, int) (int, error) { return 0, bad })
				return nil
			})
		},
		"of a pool": func(ctx context.Context, bad error) error {
			_, err := async.Start(ctx, nothing, async.On(refusingWith{bad})).Await(ctx, 0)
			return err
		},
		"beside a panic": func(ctx context.Context, bad error) (err error) {
			defer func() { err, _ = recover().(error) }()
			return async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, stopsWith(bad))
				async.Go(ctx, func(context.Context) error { plantedPanic(); return nil })
				return nil
			})
		},
	}
	for name, use := range uses {
		for _, bad := range nilErrors {
			t.Run(fmt.Sprintf("%s/%T", name, bad), func(t *testing.T) {
				inBubble(t, func(t *testing.T, ctx context.Context) {
					var err error
					require.NoError(t, async.Scope(ctx, func(ctx context.Context) error { err = use(ctx, bad); return nil }))
					require.Error(t, err)
					_ = err.Error()
					_ = errors.Is(err, io.EOF)
				})
			})
		}
	}
}

// refusingWith is a pool that refuses everything with an error.
type refusingWith struct{ err error }

func (r refusingWith) Execute(func()) error { return r.err }

// A ctx whose first Err, once armed, calls hook.
type hookedErr struct {
	context.Context
	armed atomic.Bool
	hook  func()
}

func (c *hookedErr) Err() error {
	if c.armed.CompareAndSwap(true, false) {
		c.hook()
	}
	return c.Context.Err()
}

func TestAPromiseWhoseScopeEndsAsItIsMadeIsAbandoned(t *testing.T) {
	end, ended, ctxs := make(chan struct{}), make(chan struct{}), make(chan context.Context, 1)
	go func() {
		defer close(ended)
		_ = async.Scope(t.Context(), func(ctx context.Context) error { ctxs <- ctx; <-end; return nil })
	}()
	derived, cancel := context.WithCancel(<-ctxs)
	defer cancel()
	c := &hookedErr{Context: derived, hook: func() { close(end); <-ended }}
	c.armed.Store(true)
	f, _ := async.NewPromise[int](c, async.Timeout(time.Hour))
	_, err, _ := f.Result()
	assert.ErrorIs(t, err, async.ErrAbandoned)
}

func TestOptionsThatDoNotApplySaySo(t *testing.T) {
	_ = async.Scope(t.Context(), func(ctx context.Context) error {
		for name, option := range map[string]async.TaskOption{
			"Restart":   async.Restart(async.RestartPolicy{Interval: async.Every(time.Second)}),
			"Heartbeat": async.Heartbeat(time.Second),
			"On":        async.On(spawning{}),
			"Priority":  async.Priority(1),
		} {
			assert.PanicsWithValue(t, "async: NewPromise with "+name+": nothing runs for a promise",
				func() { async.NewPromise[int](ctx, option) })
		}
		assert.PanicsWithValue(t, "async: Go with OnDiscard: the task gives no value; start it with Execute",
			func() { async.Go(ctx, func(context.Context) error { return nil }, async.OnDiscard(func(int) {})) })
		return nil
	})
}

// The tests below make the mistakes that people make who begin with this package. What
// they see then leads to the cause: by the name of the task or scope, and by
// saying what has happened to it.
