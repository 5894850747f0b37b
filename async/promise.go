package async

import (
	"context"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// A Promise is the side of a future from which it is settled. The first call
// of Resolve or Reject wins; any number of goroutines may call them. The code before that call happens
// before a wait for the future returns. The zero Promise
// has no future: [NewPromise] makes both.
type Promise[T any] struct{ f *Future[T] }

// NewPromise returns a future that no handler stands behind and the promise that
// settles it, for results that come from a callback.
//
//	answer, promise := async.NewPromise[string](ctx)
//	client.OnAnswer(func(text string) { promise.Resolve(text) })
//
// # Details
//
// NewPromise does not block. The future belongs to the scope of ctx, but the scope
// does not wait for it. If the scope ends first, the future settles with
// [ErrAbandoned], which is a failure of the scope only if a wait was under way. A
// rejected promise that nobody awaited fails the scope like any future.
//
// The context of a promise is a child of ctx. When it is cancelled, with the scope, by
// [Timeout], [Future.Cancel] or an expired Await, the future settles with the cause:
// at once, or, if it has a hook of [OnAbort], when that has returned and the promise
// is still unresolved.
//
// On a scope that has ended the future holds [ErrScopeEnded]. Without a scope in ctx
// the promise belongs to the root, which does not end. A nil ctx panics, and so do
// [Restart], [Heartbeat], [On] and [Priority], which say how a handler runs.
func NewPromise[T any](ctx context.Context, opts ...TaskOption) (*Future[T], *Promise[T]) {
	f := new(job[T])
	f.init(tree.KindPromise, nil)
	mustPromise(f.checkDiscard(opts))
	t, ctx := tree.Nearest(ctx)
	owner := tree.OwnerOf(t)
	if !f.f.Promise(owner, ctx, newMore(owner, opts)) {
		f.f.SettleUnowned(tree.LateStart(t, f.f.Task.Naming().In(nil)))
	}
	return f.public(), &Promise[T]{f.public()}
}

// Resolve settles the future with value and returns true; false if it was
// resolved, rejected or abandoned before, in which case value goes to the hook
// of [OnDiscard].
func (p *Promise[T]) Resolve(value T) bool {
	f := (*job[T])(p.made("Resolve"))
	if !f.f.Take() {
		f.Discard(value)
		return false
	}
	f.value = value
	var v tree.Verdict
	f.offer(&v)
	f.f.SettlePromise(&v)
	return true
}

// Reject settles the future with err and returns true; false if it was
// resolved, rejected or abandoned before. A nil err panics.
func (p *Promise[T]) Reject(err error) bool {
	if err == nil {
		panic("async: Reject(nil): a promise is rejected with an error or resolved with a value")
	}
	return p.made("Reject").f.Reject(err)
}

// made returns the future of p. It panics if there is none, because op was
// called on a nil Promise or on one that NewPromise has not made.
func (p *Promise[T]) made(op string) *Future[T] {
	if p == nil || p.f == nil {
		panic("async: " + op + " of a nil or zero Promise: it is NewPromise that returns one")
	}
	return p.f
}

// mustPromise panics if o has what says how a handler runs.
func mustPromise(o *tree.TaskOptions) {
	for _, option := range [...]struct {
		name  string
		given bool
	}{
		{"Restart", o.Added().Restart != nil}, {"Heartbeat", o.Added().Heart != nil},
		{"On", o.On != nil}, {"Priority", o.Priority != 0},
	} {
		if option.given {
			panic("async: NewPromise with " + option.name + ": nothing runs for a promise")
		}
	}
}
