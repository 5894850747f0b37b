package memstore_test

import (
	"testing"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/taskqueuetest"
)

func TestStore(t *testing.T) {
	taskqueuetest.Run(t, func(*testing.T) taskqueue.Store { return memstore.New() })
}
