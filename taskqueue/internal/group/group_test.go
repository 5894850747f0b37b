package group_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/taskqueue/internal/group"
)

// One caller has the panic; the others of its round have an error, and do not wait.
func TestAPanicOfServeIsNoSuccessForAnybody(t *testing.T) {
	started, gathered := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	g := group.New(100, func(items []int) error {
		if calls.Add(1) == 1 {
			close(started)
			<-gathered
			return nil
		}
		panic("boom")
	})
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, g.Do(0)) })
	<-started
	var failed, panicked atomic.Int64
	var all sync.WaitGroup
	for i := range 10 {
		all.Add(1)
		wg.Go(func() {
			defer func() {
				if recover() != nil {
					panicked.Add(1)
				}
			}()
			all.Done()
			if g.Do(i) != nil {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	close(gathered)
	wg.Wait()
	assert.EqualValues(t, 10, failed.Load()+panicked.Load())
	assert.Positive(t, panicked.Load())
	assert.Equal(t, calls.Load()-1, panicked.Load(), "each call panics once")
}
