// Package items is how items come to workers: of a call that does the same to many of them, such
// as ForkJoin, ForEach, Map and AsCompleted of package async.
//
// A [Crew] is the workers of a call, a [Worker] is a task that does items one after another, and a
// [Stream] is a call on a sequence: what its caller pulls goes to the workers, and their outcomes
// to the caller.
package items

import (
	_ "sync"        // the compiler inlines methods of what tree names Mutex
	_ "sync/atomic" // and AtomicInt64 only where these are imported
)
