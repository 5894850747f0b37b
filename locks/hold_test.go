package locks

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/lease"
)

// A process may be stopped where newHold has given a hold to the keeper and does not know its
// lease yet. The keeper finds the loss before newHold goes on.
func TestALossThatIsFoundBeforeTheHoldIsMadeIsToldAfterTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []EventKind
		m, err := New(&leavingStore{}, Observe(func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, e.Kind)
		}))
		require.NoError(t, err)
		c, err := m.call("k", []LockOption{NoRenew()})
		require.NoError(t, err)
		h := &Hold{m: m, name: m.name("k"), c: c, run: newRun(m.clock.Now())}
		term := lease.Term{Granted: m.clock.Now(), Length: time.Second}
		l, err := m.keeper.Keep(h, term, lease.Fixed(), lease.CauseOf(h.cause), lease.OnLoss(func(err error) {
			assert.NotPanics(t, func() { h.tellLost(err) })
		}))
		require.NoError(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Empty(t, told)
		h.lease = l
		h.tellGranted(0)
		assert.Equal(t, []EventKind{EventGranted, EventLost, EventEnded}, told)
	})
}
