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
		switch r.next(14) {
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
				if futures[i].State() != async.Done {
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
			})
			_, _ = f.Wait(ctx)
		case 13:
			if depth > 0 {
				r.group(ctx, n, depth-1)
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
		return 0, ctx.Err()
	default:
		return n.id, nil
	}
}

func (r *treeRun) options(n *treeNode) []async.TaskOption {
	opts := []async.TaskOption{async.Name(fmt.Sprintf("node-%d", n.id))}
	switch r.next(9) {
	case 0:
		opts = append(opts, async.Timeout(time.Duration(1+r.next(50))*time.Millisecond))
	case 1, 2:
		opts = append(opts, async.OnAbort(func(ctx context.Context, cause error) error {
			r.set(func() { n.hooks++; n.hooking = true })
			if cause == nil || ctx.Err() != nil {
				r.fault("node %d: hook with cause %v, ctx %v", n.id, cause, ctx.Err())
			}
			time.Sleep(time.Duration(r.next(20)) * time.Millisecond)
			r.set(func() { n.hooking = false })
			return nil
		}))
	case 3:
		n.daemon = true
		opts = append(opts, async.Daemon())
	case 5:
		r.set(func() { n.again = true })
		opts = append(opts, async.Restart(async.Every(time.Duration(r.next(9))*time.Millisecond), async.Attempts(1+r.next(3))))
	case 4:
		opts = append(opts, async.Grace(time.Duration(r.next(20))*time.Millisecond))
	case 6:
		opts = append(opts, async.StopOn(closedAfter(time.Duration(r.next(40))*time.Millisecond), errors.New("a channel was closed")))
	case 7:
		opts = append(opts, async.Leader())
	}
	return opts
}

func (r *treeRun) goTask(ctx context.Context, parent *treeNode, depth int) {
	n := r.node(parent)
	async.Go(ctx, func(ctx context.Context) error {
		_, err := r.handler(ctx, n, depth)
		return err
	}, r.options(n)...)
}

func (r *treeRun) execute(ctx context.Context, parent *treeNode, depth int) (*async.Future[int], *treeNode) {
	n := r.node(parent)
	return async.Execute(ctx, func(ctx context.Context) (int, error) { return r.handler(ctx, n, depth) }, r.options(n)...), n
}

func (r *treeRun) await(ctx context.Context, f *async.Future[int], n *treeNode) {
	limit := time.Duration(r.next(4)) * 7 * time.Millisecond
	begin := time.Now()
	_, err := f.Await(ctx, limit)
	if late := time.Since(begin) - limit; limit > 0 && late > 25*time.Millisecond {
		r.fault("await of node %d came back %v late", n.id, late)
	}
	// It may have settled since it was told; Result would be given the outcome.
	if f.State() != async.Done || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		r.set(func() { n.told = true })
	}
	r.given(err)
}

// scope opens a scope in node parent and checks it when it has returned.
func (r *treeRun) scope(ctx context.Context, parent *treeNode, depth int) (err error) {
	n := r.node(parent)
	var opts []async.ScopeOption
	switch r.next(7) {
	case 0:
		opts = append(opts, async.Limit(1+r.next(3)))
	case 1:
		opts = append(opts, async.Timeout(time.Duration(1+r.next(60))*time.Millisecond))
	case 2:
		opts = append(opts, async.StopOn(closedAfter(time.Duration(r.next(60))*time.Millisecond), errors.New("a channel was closed")))
	case 3:
		opts = append(opts, async.OnPanic(func(p *async.PanicError) error { r.given(p); return nil }))
	}
	defer func() {
		r.closed(n)
		if v := recover(); v != nil {
			err = v.(error) // of its own body as it was, of a task as a PanicError
			if p, ok := v.(*async.PanicError); ok && len(p.Stack) == 0 {
				r.fault("scope of node %d panicked with %v", n.id, v)
			}
		}
		r.given(err)
	}()
	return async.Scope(ctx, func(ctx context.Context) error {
		_, err := r.handler(ctx, n, depth)
		return err
	}, opts...)
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
