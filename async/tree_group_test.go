package async_test

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/async"
)

// group makes a group in node parent, starts a few tasks in it, and leaves it to its
// owner, or ends it and checks it then.
func (r *treeRun) group(ctx context.Context, parent *treeNode, depth int) {
	n := r.node(parent, "NewGroup")
	opts := treeScopeOptions[async.ScopeOption](r, n)
	r.set(func() { n.stray = n.detaches }) // its owner may be told, and then we are not
	g := async.NewGroup(ctx, opts...)
	for range 1 + r.next(3) {
		m := r.node(n, "Group.Go")
		err := g.Go(func(ctx context.Context) error {
			if r.next(4) == 0 {
				r.goInto(g, n)
			}
			_, err := r.handler(ctx, m, depth)
			return err
		}, r.options(m)...)
		if err != nil && !errors.Is(err, async.ErrScopeEnded) {
			r.fault("Go in the group of node %d: %v", n.id, err)
		}
		if r.next(3) == 0 {
			time.Sleep(time.Duration(r.next(30)) * time.Millisecond)
		}
	}
	switch r.next(5) {
	case 0, 1:
		r.endGroup(ctx, g, n)
	case 2:
		go r.goInto(g, n) // races the end
		r.endGroup(ctx, g, n)
	case 3:
		g.Cancel(errors.New("cancelled by the tree"))
	}
}

// goInto starts one more task in g, the group of node n, or is refused.
func (r *treeRun) goInto(g *async.Group, n *treeNode) {
	m := r.node(n, "Group.Go, late")
	err := g.Go(func(ctx context.Context) error {
		r.set(func() { m.started = true })
		defer r.set(func() { m.ended = true })
		return async.Sleep(ctx, time.Millisecond)
	})
	if err != nil && !errors.Is(err, async.ErrScopeEnded) {
		r.fault("Go in the group of node %d: %v", n.id, err)
	}
}

// endGroup stops g, the group of node n, or waits for it.
func (r *treeRun) endGroup(ctx context.Context, g *async.Group, n *treeNode) {
	defer func() {
		if v := recover(); v != nil {
			p := v.(*async.PanicError)
			r.closed(n)
			r.given(n, p)
		}
	}()
	var err error
	if r.next(2) == 0 {
		err = g.Stop(ctx, errors.New("stopped by the tree"))
	} else {
		err = g.Wait(ctx)
	}
	r.given(n, err)
	var left *async.StragglerError
	if ctx.Err() == nil && (n.stray || !errors.As(err, &left)) {
		r.closed(n)
		if err := g.Go(nothing); !errors.Is(err, async.ErrScopeEnded) {
			r.fault("Go in the group of node %d after its end: %v", n.id, err)
		}
	}
}
