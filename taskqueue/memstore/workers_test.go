package memstore

import (
	"testing"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

func TestWorkers(t *testing.T) {
	taskqueuetest.RunWorkers(t, func(*testing.T) taskqueue.Store { return New() })
}
