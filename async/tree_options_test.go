package async_test

import (
	"context"
	"errors"
	"fmt"
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
