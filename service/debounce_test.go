package service

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// newProgramInBubble is newProgram for a bubble, and leaves ownPipes out: its channel would be one of the bubble, and package
// signal, which sends to it when the bubble is over, as at the next SIGPIPE of a connection, would end the process.
func newProgramInBubble(opts []Option) *program {
	p := newProgram(opts)
	p.pipes.Do(func() {})
	return p
}

// The time after a signal that has counted is what decides, not that after one that has not.
func TestSignalsThatComeTogetherAreOne(t *testing.T) {
	const together = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		p := newProgramInBubble([]Option{Debounce(together)})
		ended := make(chan int, 1)
		p.exit = func(status int) { ended <- status }
		go p.follow()
		come := func(signals ...os.Signal) {
			for _, sig := range signals {
				p.signals <- sig
				synctest.Wait()
				time.Sleep(together/2 - 1)
			}
		}
		come(os.Interrupt, syscall.SIGTERM, os.Interrupt)
		assert.Equal(t, &SignalError{os.Interrupt}, p.came[0])
		assert.Error(t, p.ctx.Err())
		assert.NoError(t, p.hurry.Err())
		assert.Len(t, p.came, 1)
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		come(syscall.SIGTERM, syscall.SIGTERM)
		assert.Error(t, p.hurry.Err())
		assert.Len(t, p.came, 2)
		assert.Empty(t, ended)
		time.Sleep(2 * time.Nanosecond)
		come(syscall.SIGTERM)
		time.Sleep(time.Second)
		assert.Equal(t, 143, <-ended)
	})
}

func TestWithoutDebounceEverySignalCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgramInBubble(nil)
		ended := make(chan int, 1)
		p.exit = func(status int) { ended <- status }
		go p.follow()
		for range 3 {
			p.signals <- os.Interrupt
		}
		assert.Equal(t, 130, <-ended)
		assert.Len(t, p.came, 3)
	})
}
