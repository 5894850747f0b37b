package locks_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

// TestLeasesThatAreNearlyOverCutNoCallForOthersShort has a store fail until some leases
// have two seconds left and others half a minute, and then answer after four seconds. A call
// ends with the first of its leases: one for both sorts would be of no use to either.
func TestLeasesThatAreNearlyOverCutNoCallForOthersShort(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const lease, well = time.Minute, 54 * time.Second
		begin := time.Now()
		w.store.Inject(func(c lockstest.Call) (f lockstest.Fault) {
			switch {
			case c.Step != lockstest.Renew:
			case time.Since(begin) < well:
				f.Fail = lockstest.ErrFault
			default:
				f.Before = 4 * time.Second
			}
			return f
		})
		var old, young []*locks.Hold
		take := func(what string, n int) (holds []*locks.Hold) {
			for i := range n {
				h, err := w.m.Acquire(t.Context(), fmt.Sprint(what, i), locks.LeaseFor(lease))
				require.NoError(t, err)
				holds = append(holds, h)
			}
			return holds
		}
		old = take("old", 100)
		time.Sleep(lease / 2)
		young = take("young", 20)
		time.Sleep(lease/2 + 6*time.Second)
		for _, h := range old {
			require.ErrorAs(t, h.Err(), new(*locks.LostError))
		}
		calls := map[string]int{}
		for _, c := range w.store.Calls(lockstest.Renew) {
			for _, r := range c.Renewals {
				if c.At.Sub(begin) >= well && strings.HasPrefix(r.Key, "young") {
					calls[r.Key]++
				}
			}
		}
		for _, h := range young {
			assert.Equal(t, 1, calls[h.Key()], "%s is renewed by the first call", h.Key())
			assert.Greater(t, h.Remaining(), lease/2)
			require.NoError(t, h.Release(t.Context()))
		}
	})
}
