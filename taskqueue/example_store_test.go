package taskqueue_test

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// The functions that follow are for those who write a store.

func ExampleCheckName() {
	fmt.Println(taskqueue.CheckName("queue", "mail"))
	fmt.Println(taskqueue.CheckName("queue", ""))
	// Output:
	// <nil>
	// taskqueue: queue: it must not be empty: give it a name
}

func ExampleCheckTasks() {
	fmt.Println(taskqueue.CheckTasks([]taskqueue.Task{{ID: "a", Type: "t"}}))
	err := taskqueue.CheckTasks(make([]taskqueue.Task, taskqueue.MaxBatch+1))
	var wrong *taskqueue.InvalidError
	fmt.Println(errors.As(err, &wrong), err)
	// Output:
	// <nil>
	// true taskqueue: tasks: there are 1001 in one call, at most 1000 are allowed: split them
}

func ExampleCheckTick() {
	fmt.Println(taskqueue.CheckTick(taskqueue.Tick{Name: "report"}))
	// Output: taskqueue: Schedule: it must not be empty: give it a name
}

func ExampleCheckClaim() {
	fmt.Println(taskqueue.CheckClaim(store.ClaimRequest{Worker: "w", Lease: time.Minute}))
	fmt.Println(taskqueue.CheckClaim(store.ClaimRequest{Worker: "w"}) != nil)
	// Output:
	// <nil>
	// true
}

func ExampleCheckExtend() {
	fmt.Println(taskqueue.CheckExtend(store.ExtendRequest{Lease: time.Minute}))
	// Output: <nil>
}

func ExampleCheckOutcomes() {
	fmt.Println(taskqueue.CheckOutcomes([]store.Outcome{{Kind: store.Succeeded}}))
	fmt.Println(taskqueue.CheckOutcomes([]store.Outcome{{}}))
	// Output:
	// <nil>
	// taskqueue: Kind: 0 is no way in which a run ends
}

func ExampleCheckSettings() {
	fmt.Println(taskqueue.CheckSettings(taskqueue.Settings{Rate: math.NaN()}) != nil)
	// Output: true
}
