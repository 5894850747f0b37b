package main

import (
	"context"
	"sync"

	"github.com/alitto/pond/v2"
	"github.com/creachadair/taskgroup"
	"github.com/panjf2000/ants/v2"
	"github.com/sourcegraph/conc/pool"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// This file has pools and queues that nothing is promised about: how ambit stands beside what people use.

// itemPools are pools that do manyItems, so many at a time.
func itemPools(limit int, f func(int) error) []rival {
	return []rival{
		{"conc", 0, concItems(limit, f)},
		{"taskgroup", 0, taskgroupItems(limit, f)},
		{"pond", 0, pondItems(limit, f)},
		{"ants", 0, antsItems(limit, f)},
	}
}

func concItems(limit int, f func(int) error) work {
	return func(n int) {
		for range n {
			p := pool.New().WithErrors().WithMaxGoroutines(limit)
			for i := range manyItems {
				p.Go(func() error { return f(i) })
			}
			must(p.Wait())
		}
	}
}

func taskgroupItems(limit int, f func(int) error) work {
	return func(n int) {
		for range n {
			g := taskgroup.New(nil)
			start := taskgroup.NewThrottle(limit).Limit(g)
			for i := range manyItems {
				start(func() error { return f(i) })
			}
			must(g.Wait())
		}
	}
}

func pondItems(limit int, f func(int) error) work {
	return func(n int) {
		for range n {
			p := pond.NewPool(limit)
			g := p.NewGroup()
			for i := range manyItems {
				g.SubmitErr(func() error { return f(i) })
			}
			must(g.Wait())
			p.StopAndWait()
		}
	}
}

// antsItems joins by hand: a pool of ants tells of no error and of no end.
func antsItems(limit int, f func(int) error) work {
	return func(n int) {
		for range n {
			p, err := ants.NewPool(limit)
			must(err)
			var all sync.WaitGroup
			all.Add(manyItems)
			for i := range manyItems {
				must(p.Submit(func() { defer all.Done(); must(f(i)) }))
			}
			all.Wait()
			p.Release()
		}
	}
}

// taskgroupOfTasks is groupOfTasks with taskgroup.
func taskgroupOfTasks(f func(context.Context) error) work {
	return func(n int) {
		for range n {
			ctx, cancel := context.WithCancel(context.Background())
			g := taskgroup.New(cancel)
			for range 1000 {
				g.Go(func() error { return f(ctx) })
			}
			must(g.Wait())
			cancel()
		}
	}
}

// concOfTasks is groupOfTasks with conc.
func concOfTasks(f func(context.Context) error) work {
	return func(n int) {
		for range n {
			p := pool.New().WithContext(context.Background()).WithCancelOnError()
			for range 1000 {
				p.Go(f)
			}
			must(p.Wait())
		}
	}
}

// A getter is a queue of distinct jobs that Kubernetes has.
type getter interface {
	Add(job int)
	Get() (job int, shutdown bool)
	Done(job int)
	ShutDown()
}

func newWorkqueue() getter     { return workqueue.NewTyped[int]() }
func newPriorityqueue() getter { return priorityqueue.New[int]("") }

// addGetDone adds, takes and ends a job, again and again.
func addGetDone(create func() getter) work {
	return func(n int) {
		q := create()
		for i := range n {
			q.Add(i)
			job, _ := q.Get()
			q.Done(job)
		}
		q.ShutDown()
	}
}

// getLoop is one goroutine that takes and ends what another adds.
func getLoop(create func() getter) work {
	return func(n int) {
		q := create()
		var wg sync.WaitGroup
		wg.Go(func() {
			for range n {
				job, _ := q.Get()
				q.Done(job)
			}
		})
		for i := range n {
			q.Add(i)
		}
		wg.Wait()
		q.ShutDown()
	}
}
