package taskqueue_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

// Three tasks run one after the other. They are added in one call, all or none.
func ExampleQueue_EnqueueAll_chain() {
	ctx := context.Background()
	q, _ := taskqueue.New(memstore.New())
	_, err := q.EnqueueAll(ctx, []taskqueue.Task{
		{ID: "fetch", Type: "step"},
		{ID: "resize", Type: "step", After: []string{"fetch"}},
		{ID: "publish", Type: "step", After: []string{"resize"}, OnFailed: taskqueue.OnFailedSkip},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	i, _ := q.Get(ctx, "resize")
	fmt.Println("resize is", i.State)
	_ = q.Work(ctx, taskqueue.Handlers{"step": func(_ context.Context, c *taskqueue.Claim) error {
		fmt.Println(c.ID)
		if c.ID == "resize" {
			return taskqueue.Dead(errors.New("this is no picture"))
		}
		return nil
	}}, taskqueue.WorkUntilEmpty())
	i, _ = q.Get(ctx, "publish")
	fmt.Println("publish is", i.State, "because", i.LastError)
	// Output:
	// resize is waiting
	// fetch
	// resize
	// publish is cancelled because task "resize", after which it was to run, is dead
}
