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

// options returns some options of a task, of which any may meet.
func (r *treeRun) options(n *treeNode) []async.TaskOption {
	opts := []async.TaskOption{async.Name(fmt.Sprintf("node-%d", n.id))}
	for range r.next(4) {
		opts = append(opts, r.option(n)...)
	}
	return opts
}

func (r *treeRun) option(n *treeNode) []async.TaskOption {
	one := func(o async.TaskOption) []async.TaskOption { return []async.TaskOption{o} }
	what := r.next(12)
	r.note(n, "%s", [...]string{"Timeout", "OnAbort", "OnAbort", "Daemon", "Grace", "Restart", "StopOn", "Leader", "Priority", "Heartbeat", "On", "-"}[what])
	switch what {
	case 0:
		return one(async.Timeout(r.millis(50)))
	case 1, 2:
		return one(async.OnAbort(func(ctx context.Context, cause error) error {
			r.set(func() { n.hooks++; n.hooking = true })
			if cause == nil || ctx.Err() != nil {
				r.fault("node %d: hook with cause %v, ctx %v", n.id, cause, ctx.Err())
			}
			time.Sleep(r.millis(20))
			r.set(func() { n.hooking = false })
			return nil
		}))
	case 3:
		n.daemon = true
		return one(async.Daemon())
	case 4:
		return one(async.Grace(r.millis(20)))
	case 5:
		n.again = true
		return one(async.Restart(async.RestartPolicy{Interval: async.Every(r.millis(9)), Attempts: 1 + r.next(3)}))
	case 6:
		return one(async.StopOn(closedAfter(r.millis(40)), errors.New("a channel was closed")))
	case 7:
		return one(async.Leader())
	case 8:
		return one(async.Priority(r.next(3)))
	case 9:
		return one(async.Heartbeat(r.millis(60)))
	case 10:
		return one(async.On(r.executor()))
	}
	return nil
}

func (r *treeRun) millis(n int) time.Duration { return time.Duration(1+r.next(n)) * time.Millisecond }

// executor returns a pool. None of them can be full: work that waits for work on a
// pool that it fills itself can only time out.
func (r *treeRun) executor() async.Executor {
	switch r.next(6) {
	case 0:
		return executorFunc(func(func()) error { return errors.New("refused") })
	case 1, 2:
		return executorFunc(func(task func()) error { task(); return nil })
	default:
		return anyPool
	}
}

// anyPool refuses nothing.
var anyPool = executorFunc(func(task func()) error { go task(); return nil })

// discards counts the values of n that are discarded.
func (r *treeRun) discards(n *treeNode) async.TaskOption {
	n.hooked = true
	return async.OnDiscard(func(v int) {
		if v != n.id+1 {
			r.fault("node %d: the value %d was discarded", n.id, v)
		}
		r.set(func() { n.discarded++ })
	})
}

// treeScopeOptions returns some options of the scope or group n.
func treeScopeOptions[O any](r *treeRun, n *treeNode) (opts []O) {
	for range r.next(4) {
		if o := r.scopeOption(n); o != nil {
			opts = append(opts, o.(O))
		}
	}
	return opts
}

func (r *treeRun) scopeOption(n *treeNode) any {
	what := r.next(9)
	r.note(n, "%s", [...]string{"Limit", "Timeout", "StopOn", "OnPanic", "OnFailure", "OnStall", "DetachAfter", "On", "-"}[what])
	switch what {
	case 0:
		return async.Limit(1 + r.next(3))
	case 1:
		return async.Timeout(r.millis(60))
	case 2:
		return async.StopOn(closedAfter(r.millis(60)), errors.New("a channel was closed"))
	case 3:
		return async.OnPanic(func(p *async.PanicError) error {
			r.given(n, p)
			return []error{nil, p, errors.New("instead of a panic")}[r.next(3)]
		})
	case 4:
		return async.OnFailure(func(err error) error {
			r.given(n, err)
			return []error{nil, err}[r.next(2)]
		})
	case 5:
		return async.OnStall(r.millis(20), func(e *async.StragglerError) {
			if len(e.Left) == 0 {
				r.fault("node %d is told of a stall in which nobody is left", n.id)
			}
		})
	case 6:
		r.set(func() { n.detaches = true })
		return async.DetachAfter(r.millis(20))
	case 7:
		return async.On(r.executor())
	}
	return nil
}

// choose has some handlers contend. Nobody is told of those that lose.
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
