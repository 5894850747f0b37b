package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheClockIsVirtualInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		begin := c.Now()
		time.Sleep(time.Hour)
		assert.Equal(t, time.Hour, c.Now()-begin)
	})
}

func TestTheClockCountsSuspends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		suspended := 3 * time.Hour // before
		c := New()
		c.suspended, c.slept = func() time.Duration { return suspended }, suspended
		c.boot = func() time.Duration { return time.Since(c.start) + suspended }
		c.first = suspended
		begin := c.Now()
		time.Sleep(time.Second)
		suspended += time.Minute
		assert.Equal(t, time.Minute+time.Second, c.Now()-begin)
		time.Sleep(time.Second)
		suspended += time.Minute
		assert.Equal(t, 2*time.Minute+2*time.Second, c.Now()-begin)
		suspended -= time.Minute
		assert.Equal(t, 2*time.Minute+2*time.Second, c.Now()-begin, "it does not go back")
	})
}

func TestTheClockOfTheMachineGoesOn(t *testing.T) {
	c := New()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := c.Now()
			for range 50_000 {
				now := c.Now()
				if now < last {
					t.Errorf("from %v to %v", last, now)
					return
				}
				last = now
			}
		})
	}
	all.Wait()
	assert.InDelta(t, time.Since(c.start), c.Now(), float64(time.Minute))
	assert.GreaterOrEqual(t, suspendedTime(), time.Duration(0))
}
