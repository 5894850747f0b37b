//go:build !explore

package scheduler

import (
	"sync"
	"sync/atomic"
)

// The primitives by which the engine shares memory. These are other names for the types of
// the standard library, at no cost. With the build tag explore they are those
// of internal/explore, which tries interleavings; see docs/explore.md. So the
// engine uses these names and never those of sync and sync/atomic.
type (
	mutex = sync.Mutex

	atomicBool           = atomic.Bool
	atomicInt32          = atomic.Int32
	atomicUint32         = atomic.Uint32
	atomicPointer[T any] = atomic.Pointer[T]
)
