// Package asynctest helps to test programs that use package async.
//
// # What to do in tests
//
// Take the context of a test from [Context] where the program has the one of main,
// and pass it to the code under test:
//
//	func TestUpload(t *testing.T) {
//		ctx := asynctest.Context(t)
//		server := Start(ctx)                       // opens a group, starts tasks, anything
//		async.Go(ctx, feed, async.Daemon())        // of the test itself
//		require.NoError(t, Upload(ctx, "file"))
//		require.NoError(t, server.Stop(ctx))
//	}
//
// The context is a scope, which ends with the test. A task that the test has not stopped is told to
// then, waited for, and, if it does not go, named with its stack. So is a failure that nobody was
// given: a test cannot pass while something in the background has gone wrong.
//
//   - A task that is to serve until the test ends returns nil when it is told to
//     stop, or is a [async.Daemon], whose error is no failure then.
//   - Clean-up that comes after the end of the tasks belongs in [async.OnExit];
//     t.Cleanup functions registered before the call of Context run later still.
//   - In a task call t.Error, or return an error, rather than t.FailNow and what
//     calls it, require for one: that ends the task alone, not the test.
//   - With time in it, put the test in a bubble of testing/synctest and call Context
//     inside: nothing waits in real time then, and a leak is found at once.
//   - [Live] tells what runs now; [Root] is for tests of the end itself.
//   - [Eventually] waits for what is to come, and shows the tree if it does not; [NoStragglers]
//     says that what was told to stop has gone.
package asynctest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// patience is how long the check at the end of a test waits for tasks to end.
// In a synctest bubble it costs no time.
const patience = 5 * time.Second

// Context returns a context that is a scope, for a test: [async.Go] and all the rest work
// with it, and what is left of it fails t.
//
//	ctx := asynctest.Context(t)
//	async.Go(ctx, serve) // stopped and joined at the end of the test
//
// # Details
//
// The scope stands at a root of its own, so that tests share no detached tasks or
// stragglers. It is a child of t.Context, which is cancelled when the test ends. Then
// Context waits for what is left in the scope and at the root, and fails t
//
//   - with the names and stacks of what still runs 5 s later,
//   - with what has failed and nobody was given: errors and panics of tasks, also of
//     detached ones, and of hooks.
//
// A task that was stopped by the end of the test has not failed. In a synctest bubble
// call Context inside the bubble, with the bubble's t.
//
// When the test has failed Context logs what was in the tree then, and who waited for whom; see
// [async.Dump]. A test that hangs writes that to the standard error shortly before -timeout ends
// the program. In a bubble that is for [Run] to tell.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, ended := untilEnd(t)
	root, lost := newRoot(ctx, func(text string) { t.Log(text) })
	scope, join := bridge.OpenTop(root)
	ended.show(root)
	t.Cleanup(func() {
		t.Helper()
		ended.wait()
		if err := endScope(root, join, lost); err != nil {
			t.Error(err)
			logTree(t, root)
		}
	})
	return scope
}

// Root returns a context with a root of its own and without a scope, for tests that look
// at the end themselves.
//
//	ctx, check := asynctest.Root(context.Background())
//	async.Detach(ctx, "upload", upload)
//	err := check()
//
// # Details
//
// Whatever is started with the context stands at the root. check shuts the root down and
// returns an error if a detached task has failed, if anything is still registered 5 s
// later, or if an error was lost. The root's own context is a child of ctx.
func Root(ctx context.Context) (root context.Context, check func() error) {
	root, lost := newRoot(ctx, func(string) {})
	return root, func() error {
		patient, cancel := context.WithTimeout(context.WithoutCancel(root), patience)
		defer cancel()
		return shutDown(patient, lost)
	}
}

// Live returns the names of what is registered at the root of ctx: top scopes, root
// tasks, detached tasks and stragglers.
//
//	names := asynctest.Live(ctx) // [sweeper]
//
// # Details
//
// In place of the scope of [Context] it returns what is in that.
func Live(ctx context.Context) []string { return bridge.Live(ctx) }

func newRoot(ctx context.Context, said func(text string)) (root context.Context, lost *lostErrors) {
	lost = new(lostErrors)
	return bridge.NewRoot(ctx, lost.add, said), lost
}

// shutDown ends the root of ctx and returns what has gone wrong in it.
func shutDown(ctx context.Context, lost *lostErrors) error {
	return joined(async.Shutdown(ctx), lost.all())
}

// joined is errors.Join, and leaves alone what is the only one.
func joined(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

// endScope joins the scope of a test, then shuts its root down.
func endScope(root context.Context, join func(context.Context) error, lost *lostErrors) error {
	patient, cancel := context.WithTimeout(context.WithoutCancel(root), patience)
	defer cancel()
	err := outcome(patient, join)
	rest := shutDown(patient, lost)
	left := cutShort(patient, err)
	switch {
	case left == nil:
		return joined(err, rest)
	case rest != nil: // it names those who are left, too
		return rest
	default: // they have ended since
		return left
	}
}

// cutShort returns who was left when ctx has ended the join of a scope; nil: it was not
// cut short, or nobody was left, and err is how the scope has ended. The outcome may tell of
// stragglers, too: of a scope in it.
func cutShort(ctx context.Context, err error) *async.StragglerError {
	e, ok := err.(*async.ScopeError)
	if !ok || ctx.Err() == nil || e.Cause != context.Cause(ctx) || len(e.Errors) != 1 {
		return nil
	}
	left, _ := e.Errors[0].(*async.StragglerError)
	return left
}

// outcome returns how the scope has ended, a panic included. A task that was told to stop
// is no failure.
func outcome(ctx context.Context, join func(context.Context) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = value.(error) // a PanicError: nothing else panics in a join
		}
	}()
	err = join(ctx)
	if e, ok := err.(*async.ScopeError); ok && e.Cause != nil && len(e.Errors) == 0 && e.Dropped == 0 {
		return nil
	}
	return err
}

// lostErrors keeps what was reported to a root.
type lostErrors struct {
	mu   sync.Mutex
	errs []error
}

func (l *lostErrors) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *lostErrors) all() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}
