package async

import (
	"context"
	"reflect"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file makes calls again that fail, on the goroutine of the caller.

// Retry calls f until it returns no error, and returns its value: [Poll] for a call
// that fails and is made again, without a future.
//
//	row, err := async.Retry(ctx, async.Backoff(10*time.Millisecond, time.Second), db.load, async.Attempts(5))
//
// # Details
//
// Retry blocks. It runs f on the calling goroutine. Each call is a [Scope]: what f
// starts with its ctx has ended before Retry goes on, and a failure of that is one of
// the call. Between two calls Retry waits as [Sleep] does, as long as interval says,
// or [AgainAfter] in the error of f. The first call is made at once; see
// [AfterInterval].
//
// An error of f is tried again, [Final] is not: Retry returns the error that was made
// final. Retry ends with ctx, with its own [Timeout], by [StopOn] or [StopWith], or
// after [Attempts] calls; without these it goes on for ever. Then it returns a
// [*PollError] with the last error, which matches why Retry was stopped, too. No call
// is made once ctx is done; a call that succeeds although ctx is done counts. A panic
// of f is raised and not tried again, and runtime.Goexit ends the goroutine.
//
// Retry takes [Name], Timeout, [HookTimeout], StopOn, StopWith, Attempts and
// AfterInterval. The options bound and name the whole; a Timeout for each call is a
// context.WithTimeout in f. Retry panics if it is given another option, and if f,
// interval or ctx is nil. Any number of goroutines may call Retry with one ctx.
func Retry[T any](
	ctx context.Context, interval Interval, f func(ctx context.Context) (T, error), opts ...PollOption,
) (T, error) {
	if f == nil {
		panic("async: Retry with a nil function: pass what is to be called")
	}
	mustHaveInterval("Retry", interval)
	_, _ = tree.Nearest(ctx) // panics if there is no ctx
	p, o := &poll[T]{interval: interval, o: collectPoll(opts)}, new(tree.ScopeOptions)
	p.mustRetry(o)
	if p.seen.task = o.Name; o.Name == "" {
		p.seen.task = tree.FuncName(reflect.ValueOf(f).Pointer())
	}
	var value T
	var err error
	r := func(ctx context.Context) error { value, err = p.retry(ctx, f); return err }
	if o.Name == "" && o.Timeout == 0 && o.HookTimeout == 0 && o.Stops == nil {
		_ = r(ctx)
	} else if late := tree.RunScope(ctx, r, o, false); err == nil {
		err = late // its ctx has ended, and r was not called; or an observer has panicked
	}
	return value, err
}

// retry calls f until there is an answer.
func (p *poll[T]) retry(ctx context.Context, f func(context.Context) (T, error)) (none T, err error) {
	p.due = tree.Clock()
	if p.o.late {
		_ = Sleep(ctx, p.wait(nil))
	}
	for {
		if stop := tree.StopOf(ctx); stop != nil {
			return none, p.stoppedBy(stop.AsError())
		}
		value, err := scoped(ctx, f)
		p.seen.Attempts++
		if err == nil {
			return value, nil
		}
		if isFinal(err) {
			if bare, is := err.(*finalError); is {
				err = bare.err
			}
			return none, err
		}
		if stop := tree.StopOf(ctx); stop != nil && tree.IsEcho(err, stop) {
			if stop.Said(err) != nil { // else err is no news of f
				p.seen.Err = err
			}
			return none, p.stoppedBy(stop.AsError())
		}
		again := p.remember(none, err)
		if p.seen.Attempts == p.o.attempts {
			return none, p.stoppedBy(errAttempts)
		}
		_ = Sleep(ctx, p.wait(again))
	}
}

// scoped is one call of f, in a scope.
func scoped[T any](ctx context.Context, f func(context.Context) (T, error)) (value T, err error) {
	err = Scope(ctx, func(ctx context.Context) (err error) {
		value, err = f(ctx)
		return err
	})
	return value, err
}

// stoppedBy returns the outcome of calls that have ended without an answer, for why.
func (p *poll[T]) stoppedBy(why error) error {
	p.seen.why = why
	return &p.seen
}

// mustRetry panics if an option does not apply to Retry, and writes those that are of a
// scope to s.
func (p *poll[T]) mustRetry(s *tree.ScopeOptions) {
	var t tree.TaskOptions
	for _, o := range p.o.task {
		o.applyTask(&t)
	}
	for _, o := range [...]struct {
		name  string
		given bool
	}{
		{"Tolerate", p.o.tolerate != 0}, {"FixedRate", p.o.fixed}, {"Restart", p.o.restart},
		{"Grace", t.Grace != 0}, {"OnAbort", t.OnAbort != nil}, {"OnDiscard", t.Discard != nil},
		{"Daemon", t.Daemon}, {"Leader", t.Leader}, {"Heartbeat", t.Added().Heart != nil},
		{"On", t.On != nil}, {"Priority", t.Priority != 0},
	} {
		if o.given {
			panic("async: Retry with " + o.name + ": it runs on the goroutine of the caller and takes" +
				" Name, Timeout, HookTimeout, StopOn, StopWith, Attempts and AfterInterval")
		}
	}
	s.Name, s.Timeout, s.HookTimeout, s.Stops = t.Name, t.Timeout, t.HookTimeout, t.Added().Stops
}
