package lease

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheClockIsVirtualInABubble(t *testing.T) {
	outside := NewClock() // a package may have a clock from the start
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []*Clock{NewClock(), outside} {
			begin := c.Now()
			time.Sleep(time.Hour)
			assert.Equal(t, time.Hour, c.Now()-begin)
			assert.Zero(t, c.Suspended())
		}
		assert.Equal(t, time.Second, NewClock().Now(), "0 is no time of it")
	})
}

func TestTheClockCountsASuspendAtOnceAndNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClock()
		begin := c.Now()
		c.slept -= time.Minute            // the system has one minute more than the clock knows
		c.offset.Add(-int64(time.Minute)) // and the time of day has jumped by it
		assert.Equal(t, time.Minute, c.Now()-begin)
		assert.Equal(t, time.Minute, c.Suspended())
		c.slept += time.Minute // a system that takes a suspend back is not believed
		c.offset.Add(int64(time.Minute))
		assert.Equal(t, time.Minute, c.Now()-begin)
		assert.Equal(t, time.Minute, c.Suspended())
	})
}

func TestATimeOfDayThatIsSetIsNoSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClock()
		begin := c.Now()
		for _, step := range []time.Duration{time.Hour, -2 * time.Hour} {
			c.offset.Add(int64(step))
			assert.Equal(t, begin, c.Now())
		}
	})
}

// A suspend during which somebody puts the time of day back by its length leaves no hint.
func TestASuspendWithoutAHintIsFoundWhenTheSystemIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClock()
		begin := c.Now()
		c.slept -= time.Minute
		assert.Equal(t, begin, c.Now())
		c.see()
		assert.Equal(t, time.Minute, c.Now()-begin)
	})
}

func TestAPretendedSuspendIsSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClock()
		begin := c.Now()
		c.Suspend(time.Hour)
		c.Suspend(-time.Hour) // none
		assert.Equal(t, time.Hour, c.Now()-begin)
		assert.Equal(t, time.Hour, c.Suspended())
	})
}

func TestTheClockOfTheMachineGoesOn(t *testing.T) {
	c := NewClock()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			last := c.Now()
			for n := range 20_000 {
				switch {
				case i == 0 && n%1000 == 0:
					c.Suspend(noise)
				case i == 1 && n%1000 == 0:
					c.offset.Add(int64(time.Hour))
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
	assert.GreaterOrEqual(t, suspendedTime(), time.Duration(0))
}
