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
		assert.Equal(t, time.Hour, c.Soon()-begin)
	})
}

// A package may have a clock from the start, and be tested in a bubble.
func TestAClockFromOutsideIsVirtualInABubble(t *testing.T) {
	c := New()
	synctest.Test(t, func(t *testing.T) {
		begin := c.Now()
		time.Sleep(time.Hour)
		c.Suspend(time.Minute)
		assert.InDelta(t, time.Hour+time.Minute, c.Now()-begin, float64(noise))
		assert.InDelta(t, time.Minute, c.Suspended(), float64(noise))
	})
}

func TestTheClockBeginsWithASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		assert.Equal(t, time.Second, c.Now())
		assert.Equal(t, time.Second, c.Soon())
		assert.Zero(t, c.Suspended())
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
		assert.Equal(t, time.Second, c.Soon()-begin, "it does not know yet")
		assert.Equal(t, time.Minute+time.Second, c.Now()-begin)
		assert.Equal(t, time.Minute+time.Second, c.Soon()-begin)
		time.Sleep(time.Second)
		suspended += time.Minute
		assert.Equal(t, 2*time.Minute+2*time.Second, c.Now()-begin)
		assert.Equal(t, 2*time.Minute, c.Suspended())
		suspended -= time.Minute
		assert.Equal(t, 2*time.Minute+2*time.Second, c.Now()-begin, "it does not go back")
		assert.Equal(t, 2*time.Minute+2*time.Second, c.Soon()-begin, "for nobody")
	})
}

// A suspend that tests of others make is to be as a real one.
func TestASuspendMayBePretended(t *testing.T) {
	for name, c := range map[string]*Clock{"that tells suspends": New(), "that does not": deaf()} {
		t.Run("a machine "+name, func(t *testing.T) {
			before := c.Now()
			for range 3 {
				soon := c.Soon()
				c.Suspend(time.Hour)
				assert.Less(t, c.Soon()-soon, time.Hour-noise, "it does not know yet")
				assert.GreaterOrEqual(t, c.Now()-soon, time.Hour-noise)
				assert.GreaterOrEqual(t, c.Soon()-soon, time.Hour-noise)
			}
			assert.Less(t, c.Now()-before, 4*time.Hour)
		})
	}
}

// deaf is the clock of a machine where nobody knows of suspends.
func deaf() *Clock {
	c := New()
	never := func() time.Duration { return 0 }
	c.boot, c.suspended, c.slept, c.first = never, never, 0, -time.Since(c.start)
	return c
}

func TestTheClockOfTheMachineGoesOn(t *testing.T) {
	c := New()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			last := c.Now()
			for n := range 50_000 {
				if i == 0 && n%1000 == 0 {
					c.Suspend(noise)
				}
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
	assert.InDelta(t, time.Since(c.start)+50*noise, c.Now(), float64(time.Minute))
	assert.GreaterOrEqual(t, suspendedTime(), time.Duration(0))
}
