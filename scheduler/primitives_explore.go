//go:build explore

package scheduler

import "github.com/ambit-go/ambit/internal/explore"

// The primitives by which the engine shares memory when interleavings are explored. See
// primitives.go.
type (
	mutex = explore.Mutex

	atomicBool           = explore.Bool
	atomicInt32          = explore.Int32
	atomicUint32         = explore.Uint32
	atomicPointer[T any] = explore.Pointer[T]
)
