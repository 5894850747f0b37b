package async_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// handler is the body of node n: a few steps, then an end.
func (r *treeRun) handler(ctx context.Context, n *treeNode, depth int) (v int, err error) {
	r.begins(n)
	defer func() {
		if r.lie {
			time.AfterFunc(time.Hour, func() { r.set(func() { n.ended = true }) })
			return
		}
		r.set(func() { n.ended = true })
	}()
	var futures []*async.Future[int]
	var owners []*treeNode
	for range r.next(5) {
		switch r.next(18) {
		case 0:
			time.Sleep(time.Duration(r.next(40)) * time.Millisecond) // stubborn
		case 1:
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(r.next(90)) * time.Millisecond):
			}
		case 2, 3:
			if depth > 0 {
				r.goTask(ctx, n, depth-1)
			}
		case 4, 5:
			if depth > 0 {
				f, m := r.execute(ctx, n, depth-1)
				futures, owners = append(futures, f), append(owners, m)
			}
		case 6, 7:
			if len(futures) > 0 {
				i := r.next(len(futures))
				r.await(ctx, futures[i], owners[i])
			}
		case 8:
			if depth > 0 {
				if err := r.scope(ctx, n, depth-1); err != nil && r.next(2) == 0 {
					return 0, err
				}
			}
		case 9:
			r.exits(ctx, n)
		case 10:
			if len(futures) > 0 {
				i := r.next(len(futures))
				if futures[i].State() != async.StateDone {
					r.set(func() { owners[i].told = true })
					futures[i].Cancel(errors.New("cancelled by the tree"))
				}
			}
		case 11:
			if depth > 0 {
				short, cancel := context.WithTimeout(ctx, time.Duration(1+r.next(30))*time.Millisecond)
				defer cancel()
				r.goTask(short, n, depth-1)
			}
		case 12:
			f, p := async.NewPromise[int](ctx)
			async.Go(ctx, func(ctx context.Context) error {
				time.Sleep(time.Duration(r.next(20)) * time.Millisecond)
				p.Resolve(1)
				return nil
			}, async.On(anyPool)) // if it were refused nobody would resolve p
			_, _ = f.Wait(ctx)
		case 13:
			if depth > 0 {
				r.group(ctx, n, depth-1)
			}
		case 14:
			if len(futures) > 0 {
				i := r.next(len(futures))
				v, err := futures[i].Join(ctx)
				r.got(owners[i], v, err)
			}
		case 15:
			if depth > 0 {
				r.choose(ctx, n, depth-1)
			}
		case 16:
			if depth > 0 {
				r.fork(ctx, n, depth-1)
			}
		case 17:
			if depth > 0 {
				r.shield(ctx, n, depth-1)
			}
		}
	}
	return r.end(ctx, n)
}

// end is one of the ways a handler ends.
func (r *treeRun) end(ctx context.Context, n *treeNode) (int, error) {
	fail := func() error {
		err := fmt.Errorf("node %d failed", n.id)
		r.set(func() { n.err = err })
		return err
	}
	switch r.next(10) {
	case 0, 1:
		return 0, fail()
	case 2:
		err := fail()
		r.set(func() { n.loud = true })
		panic(err)
	case 3:
		runtime.Goexit()
		return 0, nil
	case 4:
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	r.set(func() { n.values++ })
	return n.id + 1, nil
}

func (r *treeRun) goTask(ctx context.Context, parent *treeNode, depth int) {
	n := r.node(parent, "Go")
	async.Go(ctx, func(ctx context.Context) error {
		_, err := r.handler(ctx, n, depth)
		return err
	}, r.options(n)...)
}

func (r *treeRun) execute(ctx context.Context, parent *treeNode, depth int) (*async.Future[int], *treeNode) {
	n := r.node(parent, "Execute")
	opts := r.options(n)
	if r.next(4) == 0 {
		opts = append(opts, r.discards(n))
	}
	return async.Execute(ctx, func(ctx context.Context) (int, error) { return r.handler(ctx, n, depth) }, opts...), n
}

func (r *treeRun) await(ctx context.Context, f *async.Future[int], n *treeNode) {
	limit := time.Duration(r.next(4)) * 7 * time.Millisecond
	begin := time.Now()
	v, err := f.Await(ctx, limit)
	if late := time.Since(begin) - limit; limit > 0 && late > 25*time.Millisecond {
		r.fault("await of node %d came back %v late", n.id, late)
	}
	// It may have settled since it was told; Result would be given the outcome.
	if f.State() != async.StateDone || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		r.set(func() { n.told = true })
	}
	r.got(n, v, err)
}

// got books what a wait for n was given.
func (r *treeRun) got(n *treeNode, v int, err error) {
	r.given(n, err)
	switch {
	case err != nil:
	case v != n.id+1:
		r.fault("node %d has the value %d", n.id, v)
	default:
		r.set(func() { n.kept = true })
	}
}

// scope opens a scope in node parent and checks it when it has returned.
func (r *treeRun) scope(ctx context.Context, parent *treeNode, depth int) (err error) {
	n := r.node(parent, "Scope")
	opts := treeScopeOptions[async.ScopeOption](r, n)
	return r.inScope(n, func() error {
		return async.Scope(ctx, func(ctx context.Context) error {
			_, err := r.handler(ctx, n, depth)
			return err
		}, opts...)
	})
}

// returned books that a call that opens the scope n has ended, with a panic or err.
func (r *treeRun) returned(n *treeNode, raised any, err error) error {
	if raised != nil {
		err = raised.(error) // of its own body as it was, of a task as a PanicError
		if p, ok := raised.(*async.PanicError); ok && len(p.Stack) == 0 {
			r.fault("scope of node %d panicked with %v", n.id, raised)
		}
	}
	if left := new(async.StragglerError); n.detaches && errors.As(everythingIn(err), &left) {
		r.set(func() { n.stray = true })
		if len(left.Left) == 0 {
			r.fault("scope of node %d has returned without tasks that it does not name", n.id)
		}
	}
	r.closed(n)
	r.given(n, err)
	return err
}

// exits registers exit hooks, of which the last must run first, after all
// tasks of the scope.
func (r *treeRun) exits(ctx context.Context, n *treeNode) {
	var order []int
	for i := range 3 {
		async.OnExit(ctx, func(ctx context.Context, outcome error) error {
			if order = append(order, i); len(order) == 3 && !slices.Equal(order, []int{2, 1, 0}) {
				r.fault("exit hooks of node %d ran in the order %v", n.id, order)
			}
			if ctx.Err() != nil {
				r.fault("exit hook of node %d with a context that is done", n.id)
			}
			r.closed(n)
			return nil
		})
	}
}
