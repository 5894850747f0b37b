package store_test

import (
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue/store"
)

func ExampleOutcome_Wait() {
	o := store.Outcome{After: -time.Second}
	fmt.Println(o.Wait())
	// Output: 0s
}
