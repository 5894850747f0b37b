//go:build !race

package scheduler

const modelFactor = 1
