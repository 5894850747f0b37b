//go:build !explore

package tree

import (
	"sync"
	"sync/atomic"
)

// Names of the types with which the engine shares memory. These are other names for the types of
// the standard library, at no cost. With the build tag explore they are those
// of internal/explore, which tries interleavings; see docs/explore.md. So the
// engine uses these names and never those of sync and sync/atomic.
type (
	Mutex = sync.Mutex
	Cond  = sync.Cond
	Pool  = sync.Pool

	AtomicBool           = atomic.Bool
	AtomicInt32          = atomic.Int32
	AtomicInt64          = atomic.Int64
	AtomicPointer[T any] = atomic.Pointer[T]
)

// Exploring guards the few calls that are there for the explorer alone: at the
// starts of goroutines and where their objects are made. It is a constant, so
// nothing is left of them.
const Exploring = false

// Born tells the explorer of a new task.
func Born(any) {}

// Starts tells the explorer that a goroutine begins; what it returns, that the goroutine ends.
func Starts(string, any) (ends func()) { return nil }
