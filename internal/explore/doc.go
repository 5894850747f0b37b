// Package explore tries interleavings of goroutines on the real code.
//
// A concurrent protocol (register, look again, publish, wake) is wrong if there
// is one order of its steps in which it fails. The race detector does not see
// such a fault, because every access may be ordered by a lock, and a stress
// test finds it by luck. This package decides the order itself, from a seed,
// tries many, and gives back the shortest that fails.
//
// # The model
//
// The code under test uses [Mutex], [Cond], [Pool] and the atomic types of this
// package in place of those of sync and sync/atomic. Each schedule runs in a
// testing/synctest bubble. A goroutine that is about to lock a Mutex, or, at
// the level [Atomics], to touch an atomic, stops there: that is a point. A
// driver waits until every goroutine of the bubble has stopped at a point or is
// blocked in some other way, picks one of those that can go on, and lets it run
// to its next point. So at most one goroutine runs between two decisions, but
// for those that are new: they run up to their first point.
//
// A Mutex is modelled: the driver knows the holder and lets nobody go on who
// would block. So a goroutine may be stopped while it holds a lock, and a cycle
// of locks is a failure with a name. Time is the bubble's. "Let a millisecond
// pass" is one more choice, so a timer may fire between any two points.
//
// Everything between two points is one step. At the level [Locks] that is right
// for state that is guarded by locks; only Atomics shows what can come between
// two atomic accesses. Plain accesses are never separated: data races are the
// race detector's work, which this package hides from it because every hand
// over orders memory. Weak memory is not modelled.
//
// # Failures
//
// A schedule fails if the program calls [World.Failf] or panics, if nothing can
// go on, if locks form a cycle, if it takes more virtual time or more decisions
// than it may, or if a goroutine is left when the program has ended. The decisions are written
// as deviations from a default: go on with the goroutine
// that runs, else with the one that was first seen. A failing schedule is shrunk
// by leaving deviations out while it still fails.
//
// # Outside
//
// On a goroutine outside the bubble, and when nothing is explored, the types
// behave as those of the standard library. So a package that was built with
// them passes its other tests, and clean-up functions may use them.
//
// The ideas are those of loom and shuttle (Rust) and Coyote (.NET); probabilistic
// concurrency testing is by Burckhardt, Kothari, Musuvathi and Nagarakatte, "A
// Randomized Scheduler with Probabilistic Guarantees of Finding Bugs".
package explore
