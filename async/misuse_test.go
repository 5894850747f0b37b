package async_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/asynctest"
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

type spawning struct{}

func (spawning) Execute(task func()) error { go task(); return nil }

// The tests below make the mistakes that people make who begin with this package. What
// they see then leads to the cause: by the name of the task or scope, and by
// saying what has happened to it.

func saveReport(context.Context) error { return errors.New("disk full") }

// mistakes are made with a ctx that has a root and no scope. Each returns what is
// seen of it: the text of an error or panic, or what an observer was told.
var mistakes = map[string]struct {
	make func(ctx context.Context) (seen string)
	see  []string // in it, in this order
	not  string   // not in it
}{
	"Go without a scope": {
		make: func(context.Context) string {
			return fmt.Sprint(panicFrom(func() { async.Go(context.Background(), saveReport) }))
		},
		see: []string{"Go on a context without a scope", "async.Scope", "async.Detach", "asynctest.Context"},
	},
	"Go in a scope that has ended": {
		make: func(ctx context.Context) string {
			ctx = endedScope(ctx, async.Name("deploy"))
			return fmt.Sprint(panicFrom(func() { async.Go(ctx, saveReport) }))
		},
		see: []string{"scope has ended", "deploy"},
	},
	"Go in a scope without a name that has ended": {
		make: func(ctx context.Context) string {
			ctx = endedScope(ctx)
			return fmt.Sprint(panicFrom(func() { async.Go(ctx, saveReport) }))
		},
		see: []string{"scope has ended", "async.Name"},
	},
	"Go with the ctx of a task that has ended": {
		make: func(ctx context.Context) (seen string) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				var stored context.Context
				_, _ = async.Start(ctx, func(ctx context.Context) error { stored = ctx; return nil }, async.Name("build")).Await(ctx, 0)
				seen = fmt.Sprint(panicFrom(func() { async.Go(stored, saveReport) }))
				return nil
			}, async.Name("deploy"))
			return seen
		},
		see: []string{"scope has ended", "build"},
	},
	"Execute in a scope that has ended": {
		make: func(ctx context.Context) string {
			ended := endedScope(ctx, async.Name("deploy"))
			_, err := async.Execute(ended, giveOne).Await(ctx, 0)
			return err.Error()
		},
		see: []string{"scope has ended", "deploy"},
	},
	"Scope in a scope that has ended": {
		make: func(ctx context.Context) string {
			return async.Scope(endedScope(ctx, async.Name("deploy")), nothing).Error()
		},
		see: []string{"scope has ended", "deploy"},
	},
	"a forgotten Await": {
		make: func(ctx context.Context) string {
			return async.Scope(ctx, func(ctx context.Context) error { async.Start(ctx, saveReport); return nil }).Error()
		},
		see: []string{"saveReport: nobody awaited it: disk full"},
	},
	"a forgotten Await, outside of all scopes": {
		make: func(ctx context.Context) string {
			ctx, check := asynctest.Root(ctx)
			async.Start(ctx, saveReport)
			synctest.Wait()
			return lostError(check).Error()
		},
		see: []string{"saveReport", "disk full"},
	},
	"two that await with different limits": {
		make: func(ctx context.Context) (seen string) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				f := async.Start(ctx, joinUntilDone, async.Name("fetch"))
				async.Go(ctx, func(ctx context.Context) error { _, _ = f.Await(ctx, 20*time.Millisecond); return nil })
				_, err := f.Await(ctx, time.Second)
				seen = err.Error()
				return nil
			})
			return seen
		},
		see: []string{"fetch", "limit 20ms of an Await"},
	},
	// It was started in the inner scope's body, and is a task of the outer one. The
	// error of a scope with one failed Go task is that failure, as its callers compare
	// it: only an observer is told of which task it is, and in which scope.
	"Go with the ctx of the outer scope in an inner one": {
		make: func(ctx context.Context) string {
			return observed(func(o async.ScopeOption) {
				_ = async.Scope(ctx, func(outer context.Context) error {
					return async.Scope(outer, func(context.Context) error {
						async.Go(outer, saveReport)
						return nil
					}, async.Name("inner"))
				}, async.Name("outer"), o)
			})
		},
		see: []string{"outer/", "saveReport", "disk full"},
		not: "inner/",
	},
	"Start with the ctx of the outer scope in an inner one": {
		make: func(ctx context.Context) string {
			return async.Scope(ctx, func(outer context.Context) error {
				return async.Scope(outer, func(context.Context) error {
					async.Start(outer, saveReport)
					return nil
				}, async.Name("inner"))
			}, async.Name("outer")).Error()
		},
		see: []string{"outer/", "saveReport: nobody awaited it: disk full"},
		not: "inner/",
	},
	"two that await each other": {
		make: func(ctx context.Context) string { return awaitNext(ctx, 2) },
		see:  []string{"await cycle: ", "0 -> 1 -> 0"},
		not:  "\n", // told once
	},
	"a task that awaits what it is part of": {
		make: func(ctx context.Context) string {
			made := make(chan *async.Future[struct{}], 1)
			f := async.Start(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { _, err := (<-made).Await(ctx, 0); return err }, async.Name("part"))
				return nil
			}, async.Name("whole"))
			made <- f
			_, err := f.Await(ctx, 0)
			return err.Error()
		},
		see: []string{"await cycle: part -> whole -> part"},
		not: "\n",
	},
	"a task that blocks for ever, without OnStall": {
		make: func(ctx context.Context) (seen string) { return blocksForEver(ctx, time.Minute) },
		see:  []string{"after being told to stop", "reads a pipe", "chan receive", "blocksForEver"},
	},
	"a task that blocks for ever, and a Shutdown without a deadline": {
		make: func(ctx context.Context) (seen string) { return blocksForEver(ctx, 0) },
		see:  []string{"not told to stop", "reads a pipe", "chan receive", "blocksForEver"},
	},
}

// TestWhatIsSeenOfAMistakeLeadsToItsCause for each of the mistakes.
func TestWhatIsSeenOfAMistakeLeadsToItsCause(t *testing.T) {
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, check := asynctest.Root(t.Context())
				seen := m.make(ctx)
				rest := seen
				for _, want := range m.see {
					_, after, found := strings.Cut(rest, want)
					require.True(t, found, "%q is not in %q, or not in order", want, seen)
					rest = after
				}
				if m.not != "" {
					require.NotContains(t, seen, m.not)
				}
				require.NoError(t, check())
			})
		})
	}
}

// endedScope returns the ctx of a scope that has ended.
func endedScope(ctx context.Context, opts ...async.ScopeOption) (ended context.Context) {
	_ = async.Scope(ctx, func(ctx context.Context) error { ended = ctx; return nil }, opts...)
	return ended
}

// observed returns what an observer is told of ends, one a line.
func observed(open func(o async.ScopeOption)) string {
	lines := make(chan string, 10)
	open(async.Observe(async.ObserverFunc(func(e async.Event) {
		if e.Kind == async.EventEnd {
			lines <- fmt.Sprint(e.Task, ": ", e.Err)
		}
	})))
	close(lines)
	return strings.Join(slices.Collect(func(yield func(string) bool) {
		for line := range lines {
			yield(line)
		}
	}), "\n")
}

// awaitNext returns the error of a scope with n tasks, each of which awaits the
// next, and the last the first. That cycle may be entered anywhere; the text
// begins with task 0.
func awaitNext(ctx context.Context, n int) string {
	err := async.Scope(ctx, func(ctx context.Context) error {
		futures := make([]*async.Future[struct{}], n)
		ready := make(chan struct{})
		for i := range futures {
			futures[i] = async.Start(ctx, func(ctx context.Context) error {
				<-ready
				_, err := futures[(i+1)%n].Await(ctx, 0)
				return err
			}, async.Name(fmt.Sprint(i)))
		}
		close(ready)
		return nil
	})
	var forgotten *async.UnawaitedError
	if !errors.As(err, &forgotten) { // the last of the cycle to end is awaited by nobody
		return err.Error()
	}
	head, path, _ := strings.Cut(forgotten.Err.Error(), "cycle: ")
	way := strings.Split(path, " -> ")
	if i := slices.Index(way, "0"); i > 0 {
		way = slices.Concat(way[i:], way[1:i], []string{"0"})
	}
	return head + "cycle: " + strings.Join(way, " -> ")
}

// TestACycleIsToldOnce however many of its waits see it at the same time.
func TestACycleIsToldOnce(t *testing.T) {
	for n, want := range map[int]string{2: "0 -> 1 -> 0", 3: "0 -> 1 -> 2 -> 0", 5: "0 -> 1 -> 2 -> 3 -> 4 -> 0"} {
		for range 200 {
			inBubble(t, func(t *testing.T, ctx context.Context) {
				require.Equal(t, "async: await cycle: "+want, awaitNext(ctx, n))
			})
		}
	}
}

// lostError returns what check says once a future has been collected.
func lostError(check func() error) (err error) {
	for range 1000 {
		runtime.GC()
		if err = check(); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("nothing was lost")
}

// blocksForEver returns what Shutdown says of a scope with a task that does not
// come back before Shutdown has. Its ctx has a deadline if limit is not 0.
func blocksForEver(ctx context.Context, limit time.Duration) string {
	pipe := make(chan struct{})
	go func() {
		_ = async.Scope(ctx, func(ctx context.Context) error {
			async.Go(ctx, func(context.Context) error { <-pipe; return nil }, async.Name("reads a pipe"))
			return nil
		}, async.Name("server"))
	}()
	synctest.Wait()
	defer synctest.Wait()
	defer close(pipe)
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return fmt.Sprint(async.Shutdown(ctx))
}

// stopsWith returns a handler that returns err when it is told to stop.
func stopsWith(err error) func(ctx context.Context) error {
	return func(ctx context.Context) error { <-ctx.Done(); return err }
}

// TestWhatBackgroundStartsIsOnRecord: a task that is started in a scope with a
// Background ctx runs on when the scope has ended. The root of the process names
// it, and prints its error if nobody awaits it. It runs itself as another
// process, as Shutdown of that root is for good.
func TestWhatBackgroundStartsIsOnRecord(t *testing.T) {
	if os.Getenv("AMBIT_TEST_BACKGROUND") != "" {
		stop := make(chan struct{})
		err := async.Scope(context.Background(), func(context.Context) error {
			async.Start(context.Background(), func(context.Context) error { <-stop; return errors.New("disk full") }, async.Name("upload"))
			return nil
		})
		fmt.Println("scope:", err)
		fmt.Println("live:", asynctest.Live(context.Background()))
		brief, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		fmt.Println("shutdown:", async.Shutdown(brief))
		close(stop)
		fmt.Println("printed:", firstPrinted())
		os.Exit(0)
	}
	out, err := runSelf(t, "AMBIT_TEST_BACKGROUND=1")
	require.NoError(t, err, out)
	require.Contains(t, out, "scope: <nil>\nlive: [upload]\n")
	require.Contains(t, out, "shutdown: async: root: 1 task still running after being told to stop: shutting down\n\tupload (aborting)")
	require.Contains(t, out, "printed: async: nobody was given this error: upload: ")
	require.Contains(t, out, "disk full")
}

// firstPrinted returns what is printed next to stderr. An error that nobody was
// given is printed when its future is collected.
func firstPrinted() string {
	r, w, err := os.Pipe()
	if err != nil {
		return err.Error()
	}
	os.Stderr = w
	go func() {
		for {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	}()
	printed := make([]byte, 1000)
	n, _ := r.Read(printed)
	return string(printed[:n])
}
