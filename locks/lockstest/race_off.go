//go:build !race

package lockstest

const raceDetector = false

// manyHeld is how many locks Load holds.
const manyHeld = 10_000
