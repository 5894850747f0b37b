//go:build explore

package tree

import "github.com/ambit-go/ambit/internal/explore"

// Types with which the engine shares memory when interleavings are explored. See
// primitives.go.
type (
	Mutex = explore.Mutex
	Cond  = explore.Cond
	Pool  = explore.Pool

	AtomicBool           = explore.Bool
	AtomicInt32          = explore.Int32
	AtomicInt64          = explore.Int64
	AtomicPointer[T any] = explore.Pointer[T]
)

const Exploring = true

// Born gives object its number in the schedule.
func Born(object any) { explore.Born(object) }

// Starts is the first thing that a new goroutine does, which works for object.
// The function returned is to be deferred.
func Starts(what string, object any) (ends func()) { return explore.Start(what, object) }
