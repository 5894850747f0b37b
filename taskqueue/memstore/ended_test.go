package memstore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// R10: ids of what has ended are known for a minute, and then forgotten some at a time.
func TestEndedIDsAreKnownForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		defer func() { assert.NoError(t, s.Close()) }()
		var tasks []taskqueue.Task
		for i := range 251 {
			tasks = append(tasks, taskqueue.Task{ID: fmt.Sprintf("%03d", i), Type: "t", MaxFailures: 1, MaxCrashes: 1})
		}
		tasks[250].Retention = time.Hour
		_, err := s.Enqueue(t.Context(), "q", tasks)
		require.NoError(t, err)
		n := 0
		claim := func(most int) []taskqueue.Info {
			n++
			got, err := s.Claim(t.Context(), store.ClaimRequest{Queue: "q", Worker: "w", Nonce: fmt.Sprint(n), Max: most, Lease: time.Hour})
			require.NoError(t, err)
			return got.Tasks
		}
		var outcomes []store.Outcome
		for _, run := range claim(1000) {
			outcomes = append(outcomes, store.Outcome{Ref: store.Ref{ID: run.ID, Token: run.Token}, Kind: store.Succeeded})
		}
		settled := func() map[store.SettleResult]int {
			r, err := s.Settle(t.Context(), "q", outcomes)
			require.NoError(t, err)
			counts := map[store.SettleResult]int{}
			for _, one := range r {
				counts[one]++
			}
			return counts
		}
		settled()
		time.Sleep(taskqueue.MinRetention - time.Nanosecond)
		for _, known := range []int{251, 151, 51, 1, 1} {
			claim(0)
			assert.Equal(t, known, settled()[store.Settled])
			assert.Equal(t, 251-known, settled()[store.Gone])
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		claim(0)
		assert.Equal(t, 251, settled()[store.Gone])
	})
}
