package taskqueue_test

import (
	"context"
	"fmt"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// No tenant keeps the others waiting: one task of each runs at a time, however many it has added.
func ExampleQueue_SetLimit() {
	tasks := memstore.New()
	q, _ := taskqueue.New(tasks)
	ctx := context.Background()
	_ = q.SetLimit(ctx, taskqueue.Limit{Key: "tenant-*", Concurrency: 1})
	for _, key := range []string{"tenant-7", "tenant-7", "tenant-7", "tenant-8"} {
		_, _ = q.Enqueue(ctx, taskqueue.Task{Type: "report", LimitKey: key})
	}
	got, err := tasks.Claim(ctx, store.ClaimRequest{Queue: q.Name(), Worker: "w", Nonce: "1", Max: 10, Lease: taskqueue.MaxDelay})
	for _, t := range got.Tasks {
		fmt.Println(t.LimitKey)
	}
	stats, _ := q.Stats(ctx)
	fmt.Println(stats.States[taskqueue.StateReady], "ready,", stats.Limited, "limited", err)
	// Output:
	// tenant-7
	// tenant-8
	// 2 ready, 2 limited <nil>
}

func ExampleLimit_Lifts() {
	fmt.Println((&taskqueue.Limit{Key: "tenant-7"}).Lifts(), (&taskqueue.Limit{Key: "tenant-7", Rate: 2}).Lifts())
	// Output: true false
}

func ExampleCheckLimit() {
	fmt.Println(taskqueue.CheckLimit(taskqueue.Limit{Concurrency: 1}))
	// Output: taskqueue: Limit: set either Key, for tasks of a LimitKey, or Type, for tasks of a type
}
