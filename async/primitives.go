//go:build !explore

package async

import (
	"sync"
	"sync/atomic"
)

// What the engine shares memory with. These are other names for the types of
// the standard library, at no cost. With the build tag explore they are those
// of internal/explore, which tries interleavings; see docs/explore.md. So the
// engine uses these names and never those of sync and sync/atomic.
type (
	mutex = sync.Mutex
	cond  = sync.Cond
	pool  = sync.Pool

	atomicBool           = atomic.Bool
	atomicInt32          = atomic.Int32
	atomicInt64          = atomic.Int64
	atomicPointer[T any] = atomic.Pointer[T]
)

// exploring guards the few calls that are there for the explorer alone: at the
// starts of goroutines and where their objects are made. It is a constant, so
// nothing is left of them.
const exploring = false

func born(any) {}

func starts(string, any) (ends func()) { return nil }
