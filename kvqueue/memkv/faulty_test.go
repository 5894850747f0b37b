package memkv_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// Each fault says what it says, and does what it does, on a store that knows nothing of it.
func TestAFaultDoesWhatItSays(t *testing.T) {
	for fault, want := range map[memkv.Fault]struct {
		err         error
		there, late bool
	}{
		memkv.None:       {nil, true, true},
		memkv.Conflict:   {kvqueue.ErrConflict, false, false},
		memkv.Dropped:    {kvqueue.ErrUnknown, false, false},
		memkv.Unanswered: {kvqueue.ErrUnknown, true, true},
		memkv.Late:       {kvqueue.ErrUnknown, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			inner := memkv.New()
			defer inner.Close()
			kv := memkv.NewFaulty(inner, func([]kvqueue.Guard, []kvqueue.Write) memkv.Fault { return fault })
			defer kv.Wait()
			_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("a")}})
			require.ErrorIs(t, err, want.err)
			there := func() bool {
				results, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("a")})
				require.NoError(t, err)
				return len(results[0].Pairs) == 1
			}
			assert.Equal(t, want.there, there(), fault)
			time.Sleep(time.Second)
			assert.Equal(t, want.late, there(), fault)
		})
	}
}
