package async_test

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAPlantedGoroutineIsFound shows that the check of TestMain can fail.
func TestAPlantedGoroutineIsFound(t *testing.T) {
	stop := make(chan struct{})
	ignore := goleak.IgnoreCurrent()
	go func() { <-stop }()
	if goleak.Find(ignore) == nil {
		t.Error("a leaked goroutine was not found")
	}
	close(stop)
	if err := goleak.Find(ignore); err != nil {
		t.Error(err)
	}
}

// goroutines returns how many goroutines there are. If that is more than most
// it looks again for a while: when the garbage collector takes the stacks of
// goroutines that have ended, runtime.NumGoroutine counts these, too.
func goroutines(most int) int {
	n := runtime.NumGoroutine()
	for range 100_000 {
		if n <= most {
			break
		}
		runtime.Gosched()
		n = min(n, runtime.NumGoroutine())
	}
	return n
}
