package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// queues returns B9.
func queues() []contest {
	return []contest{
		{id: "B9", what: "Add, Take, Ack of a job", ours: always(addTakeAck), peers: []rival{{"workqueue", 2, addGetDone(newWorkqueue)}, {"priorityqueue", 0, addGetDone(newPriorityqueue)}}, allocs: -1},
		{id: "B9", what: "a job through Consume, one producer", ours: always(consume), peers: []rival{{"workqueue", 2.5, getLoop(newWorkqueue)}, {"priorityqueue", 0, getLoop(newPriorityqueue)}}, allocs: 2},
		{id: "B9", what: "a job through Do", ours: always(do), peers: []rival{{"workqueue", 0, addGetDone(newWorkqueue)}}, allocs: -1},
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

func duplicates() (work, func()) {
	q := jobqueue.New[int]()
	q.Add(1)
	return func(n int) {
		for range n {
			mustBe(!q.Add(1))
		}
	}, func() {}
}
