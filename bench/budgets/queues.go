package main

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// queues returns B9.
func queues() []contest {
	return []contest{
		{id: "B9", what: "Add, Take, Ack of a job", ours: always(addTakeAck), peers: []rival{{"workqueue", 2, addGetDone}}, allocs: -1},
		{id: "B9", what: "a job through Consume, one producer", ours: always(consume), peers: []rival{{"workqueue", 2.5, getLoop}}, allocs: 2},
		{id: "B9", what: "a job through Do", ours: always(do), peers: []rival{{"workqueue", 0, addGetDone}}, allocs: -1},
		{id: "B9", what: "duplicate Add", ours: duplicates, allocs: 0, ns: 40},
	}
}

func addTakeAck(n int) {
	q := jobqueue.New[int]()
	must(async.Scope(context.Background(), func(ctx context.Context) error {
		for i := range n {
			q.Add(i)
			jobs, err := q.Take(ctx, 1)
			must(err)
			q.Ack(ctx, jobs...)
		}
		return nil
	}))
}

func addGetDone(n int) {
	q := workqueue.NewTyped[int]()
	for i := range n {
		q.Add(i)
		job, _ := q.Get()
		q.Done(job)
	}
	q.ShutDown()
}

func do(n int) {
	q := jobqueue.New[int]()
	for i := range n {
		q.Add(i)
		must(q.Do(context.Background(), 1, func(context.Context, []int) error { return nil }))
	}
}

func consume(n int) {
	q := jobqueue.New[int]()
	var done atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		must(q.Consume(context.Background(), 1, 1, func(context.Context, []int) error {
			if done.Add(1) == int64(n) {
				q.Close()
			}
			return nil
		}))
	})
	for i := range n {
		q.Add(i)
	}
	wg.Wait()
}

func getLoop(n int) {
	q := workqueue.NewTyped[int]()
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

func duplicates() (work, func()) {
	q := jobqueue.New[int]()
	q.Add(1)
	return func(n int) {
		for range n {
			mustBe(!q.Add(1))
		}
	}, func() {}
}
