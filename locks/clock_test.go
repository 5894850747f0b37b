package locks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheClockIsVirtualInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		begin := c.now()
		time.Sleep(time.Hour)
		assert.Equal(t, time.Hour, c.now()-begin)
		assert.Equal(t, time.Hour, c.soon()-begin)
	})
}

func TestTheClockCountsSuspends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		suspended := 3 * time.Hour // before
		c := newClock()
		c.suspended, c.slept = func() time.Duration { return suspended }, suspended
		c.boot = func() time.Duration { return time.Since(c.start) + suspended }
		c.first = suspended
		begin := c.now()
		time.Sleep(time.Second)
		suspended += time.Minute
		assert.Equal(t, time.Minute+time.Second, c.now()-begin)
		assert.Equal(t, time.Minute+time.Second, c.soon()-begin)
		suspended += time.Minute
		assert.Equal(t, time.Minute+time.Second, c.soon()-begin, "it does not know yet")
		assert.Equal(t, 2*time.Minute+time.Second, c.now()-begin)
	})
}

func TestTheClockOfTheMachineGoesOn(t *testing.T) {
	c := newClock()
	last := c.now()
	for range 100_000 {
		now := c.now()
		if now < last {
			t.Fatalf("from %v to %v", last, now)
		}
		last = now
	}
	assert.InDelta(t, time.Since(c.start), last, float64(time.Minute))
	assert.GreaterOrEqual(t, suspendedTime(), time.Duration(0))
}
