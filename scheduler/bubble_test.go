package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ambit-go/ambit/scheduler"
)

// inBubble runs f in a bubble, where what hangs is found. Goroutines of the pool
// may still be on their way when f returns.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t)
		time.Sleep(time.Second)
	})
}

// onEvery runs f on each of some pools, each in a bubble.
func onEvery(t *testing.T, some map[string]func(t *testing.T) scheduler.Executor, f func(t *testing.T, pool scheduler.Executor)) {
	t.Helper()
	for name, pool := range some {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) { f(t, pool(t)) })
		})
	}
}

// onEveryPool runs f on every pool.
func onEveryPool(t *testing.T, f func(t *testing.T, pool scheduler.Executor)) {
	t.Helper()
	onEvery(t, pools, f)
}
