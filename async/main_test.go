package async_test

import (
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
