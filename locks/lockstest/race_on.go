//go:build race

package lockstest

const raceDetector = true

// manyHeld is how many locks Load holds: the race detector makes all ten times as slow.
const manyHeld = 1000
