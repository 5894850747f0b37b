package kvqueuetest_test

import (
	"testing"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/kvqueuetest"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// A store of your own is tested so.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestMyStore(t *testing.T)
		kvqueuetest.Run(t, func(t testing.TB) kvqueue.KV {
			s := memkv.New()
			t.Cleanup(s.Close)
			return s
		})
	}
	// Output:
}
