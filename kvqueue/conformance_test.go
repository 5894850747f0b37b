package kvqueue_test

import (
	"testing"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/kvqueuetest"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

func TestMemory(t *testing.T) {
	kvqueuetest.Run(t, func(t testing.TB) kvqueue.KV {
		s := memkv.New()
		t.Cleanup(s.Close)
		return s
	})
}
