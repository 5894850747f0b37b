//go:build !race

package jobqueue_test

// raceFactor divides the counts of tests that are about amounts.
const raceFactor = 1
