//go:build explore

package async

import "github.com/ambit-go/ambit/internal/explore"

// What the engine shares memory with when interleavings are explored. See
// primitives.go.
type (
	mutex = explore.Mutex
	cond  = explore.Cond
	pool  = explore.Pool

	atomicBool           = explore.Bool
	atomicInt32          = explore.Int32
	atomicInt64          = explore.Int64
	atomicPointer[T any] = explore.Pointer[T]
)

const exploring = true

// born gives object its number in the schedule.
func born(object any) { explore.Born(object) }

// starts is the first thing that a new goroutine does, which works for object.
// What it returns is to be deferred.
func starts(what string, object any) (ends func()) { return explore.Start(what, object) }
