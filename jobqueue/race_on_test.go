//go:build race

package jobqueue_test

// raceFactor divides the counts of tests that are about amounts: the race
// detector makes everything ten times slower.
const raceFactor = 20
