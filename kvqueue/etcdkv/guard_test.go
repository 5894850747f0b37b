package etcdkv

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/kvqueue"
)

// It would be taken for a guard of the first key.
func TestAGuardOfARangeThatDemandsAnythingButAbsenceIsRefused(t *testing.T) {
	for _, is := range []kvqueue.Condition{kvqueue.Unchanged, kvqueue.Present, kvqueue.Below} {
		err := new(Store).fits([]kvqueue.Guard{{Key: []byte("a"), End: []byte("b"), Is: is}}, nil)
		var invalid *kvqueue.InvalidError
		assert.ErrorAs(t, err, &invalid)
	}
	assert.NoError(t, new(Store).fits([]kvqueue.Guard{{Key: []byte("a"), End: []byte("b"), Is: kvqueue.Absent}}, nil))
}
