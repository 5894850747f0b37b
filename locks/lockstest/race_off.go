//go:build !race

package lockstest

// manyHeld is how many locks Load holds.
const manyHeld = 10_000
