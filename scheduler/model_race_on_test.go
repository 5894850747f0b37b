//go:build race

package scheduler

// modelFactor divides the counts of the model and memory tests: the race
// detector makes everything ten times slower.
const modelFactor = 10
