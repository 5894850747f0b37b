package async_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async"
)

// choose has some handlers contend. Of those that lose nobody is told.
func (r *treeRun) choose(ctx context.Context, parent *treeNode, depth int) {
	var tasks []func(context.Context) (int, error)
	for range 1 + r.next(3) {
		n := r.node(parent, "contender")
		n.loser = true
		tasks = append(tasks, func(ctx context.Context) (int, error) { return r.handler(ctx, n, depth) })
	}
	limit := time.Duration(r.next(3)) * 9 * time.Millisecond
	var one *async.Future[int]
	var many *async.Future[[]int]
	var err error
	switch r.next(6) {
	case 0:
		one = async.Race(ctx, tasks...)
	case 1:
		one = async.Any(ctx, tasks...)
	case 2:
		one = async.Hedge(ctx, r.millis(9), tasks...)
	case 3:
		many = async.All(ctx, tasks...)
	case 4:
		many = async.Quorum(ctx, 1+r.next(len(tasks)), tasks...)
	default:
		_, err = async.Settle(ctx, tasks...).Await(ctx, limit)
	}
	switch {
	case one != nil:
		_, err = one.Await(ctx, limit)
	case many != nil:
		_, err = many.Await(ctx, limit)
	}
	r.given(parent, err)
}

// fork has some handlers done as items.
func (r *treeRun) fork(ctx context.Context, parent *treeNode, depth int) {
	top := r.node(parent, "items")
	var items []*treeNode
	for range 1 + r.next(4) {
		items = append(items, r.node(top, "item"))
	}
	var opts []async.ForkOption
	if r.next(2) == 0 {
		opts = append(opts, async.Limit(1+r.next(2)))
	}
	if r.next(3) == 0 {
		opts = append(opts, async.FailFast())
	}
	if r.next(3) == 0 {
		opts = append(opts, async.ItemTimeout(r.millis(30)))
	}
	f := func(ctx context.Context, n *treeNode) (int, error) { return r.handler(ctx, n, depth) }
	switch r.next(3) {
	case 0:
		all, err := async.ForkJoin(ctx, items, f, opts...).Await(ctx, time.Duration(r.next(3))*15*time.Millisecond)
		if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
			r.set(func() { top.told = true })
		}
		r.given(top, err)
		for i, one := range all {
			r.got(items[i], one.Value, one.Err)
		}
	case 1:
		_ = r.inScope(top, func() error {
			return async.ForEach(ctx, slices.Values(items), func(ctx context.Context, n *treeNode) error {
				_, err := f(ctx, n)
				return err
			}, opts...)
		})
	default:
		_ = r.inScope(top, func() error {
			leave := r.next(3) == 0
			for _, err := range async.Map(ctx, slices.Values(items), f, opts...) {
				r.given(top, err)
				if leave { // of the rest only panics are told
					r.set(func() { top.told = true })
					break
				}
			}
			return nil
		})
	}
}

// shield opens a shielded stretch in node parent.
func (r *treeRun) shield(ctx context.Context, parent *treeNode, depth int) {
	n, d := r.node(parent, "Shield"), r.millis(40)
	_ = r.inScope(n, func() error {
		return async.Shield(ctx, d, func(ctx context.Context) error {
			_, err := r.handler(ctx, n, depth)
			return err
		})
	})
}

// inScope calls f, which opens the scope n, and checks that when it has ended.
func (r *treeRun) inScope(n *treeNode, f func() error) (err error) {
	came := false
	defer func() {
		raised := recover()
		// If the body has panicked, or called Goexit, there is nobody to return the
		// error to: the root is told who is left.
		if _, ofTask := raised.(*async.PanicError); n.detaches && !came && !ofTask {
			r.set(func() { n.stray = true })
		}
		err = r.returned(n, raised, err)
	}()
	err = f()
	came = true
	return err
}
