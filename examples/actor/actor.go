package main

import (
	"context"

	"github.com/ambit-go/ambit/scheduler"
)

// An actor owns a state that nobody else sees but functions given to ask and
// tell. These run one at a time, in the order of the calls, and each sees all
// that the ones before it have done, so the state needs no lock. An actor that
// nobody asks costs no goroutine.
//
// A function that waits has the actor wait: it is not reentrant. See to it that no
// two actors can wait for each other, as together does.
type actor[S any] struct {
	worker *scheduler.ExecutorWorker
	state  S
}

// newActor returns an actor that ends with the scope of ctx.
func newActor[S any](ctx context.Context, s *scheduler.Scheduler, name string, state S) *actor[S] {
	return &actor[S]{s.NewWorker(ctx, scheduler.Name(name)), state}
}

// ask has a run f and waits for what it returns. If ctx ends first ask returns
// its error, and f is taken out of the queue, or its ctx is cancelled.
func ask[S, T any](ctx context.Context, a *actor[S], f func(ctx context.Context, state *S) (T, error)) (T, error) {
	return scheduler.Call(ctx, a.worker, func(ctx context.Context) (T, error) { return f(ctx, &a.state) })
}

// tell has a run f and does not wait.
func (a *actor[S]) tell(f func(state *S)) error {
	return a.worker.Post(func() { f(&a.state) })
}
