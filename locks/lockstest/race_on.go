//go:build race

package lockstest

const raceDetector = true
