package scheduler_test

import (
	"fmt"
	"runtime/debug"
	"time"
)

// bound ends the process if a random program has not ended after an hour of its bubble's time: beside
// a periodic task a worker that is wedged would let that time go on for ever, at full load. A
// program that ends takes seconds of it. Call the function that bound returns at the end of the program.
func bound(program any) (end func() bool) {
	return time.AfterFunc(time.Hour, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("scheduler: a program has not ended after an hour of its bubble: %v", program))
	}).Stop
}
