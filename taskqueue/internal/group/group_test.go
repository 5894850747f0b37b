package group_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/taskqueue/internal/group"
)

func TestMain(m *testing.M) { os.Exit(clitest.LeakChecked(m).Run()) }

// held is a group of numbers whose first call waits, and which notes all calls.
type held struct {
	*group.Group[int]
	release chan struct{}
	mu      sync.Mutex
	calls   [][]int
}

func hold(most, parallel int, weigh func(int) int, serve func(items []int) error) *held {
	h := &held{release: make(chan struct{})}
	h.Group = group.New(most, parallel, weigh, func(items []int) error {
		h.mu.Lock()
		h.calls = append(h.calls, slices.Sorted(slices.Values(items)))
		h.mu.Unlock()
		<-h.release
		return serve(items)
	})
	return h
}

func fine([]int) error { return nil }

var ctx = context.Background()

func TestWhatComesWhileARoundIsServedIsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(100, 1, nil, fine)
		for i := range 5 {
			go func() { assert.NoError(t, h.Do(ctx, i)) }()
			synctest.Wait()
		}
		close(h.release)
		h.Idle()
		assert.Equal(t, [][]int{{0}, {1, 2, 3, 4}}, h.calls)
	})
}

func TestRoundsAreAsHeavyAsTheyMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(10, 1, func(i int) int { return i }, fine)
		for _, i := range []int{0, 4, 5, 3, 7, 25, 1} {
			go func() { assert.NoError(t, h.Do(ctx, i)) }()
			synctest.Wait()
		}
		close(h.release)
		h.Idle()
		assert.Equal(t, [][]int{{0}, {4, 5}, {3, 7}, {25}, {1}}, h.calls, "one that is too heavy goes alone")
	})
}

func TestRoundsAreServedBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(100, 2, nil, fine)
		for i := range 4 {
			go func() { assert.NoError(t, h.Do(ctx, i)) }()
			synctest.Wait()
		}
		assert.Equal(t, [][]int{{0}, {1}}, h.calls, "not more than two")
		close(h.release)
		h.Idle()
		assert.Equal(t, []int{2, 3}, h.calls[2])
	})
}

func TestWhoLeavesBeforeTheRoundIsServedTakesTheItemAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(100, 1, nil, fine)
		gone := errors.New("gone")
		ends, end := context.WithCancelCause(ctx)
		go func() { assert.NoError(t, h.Do(ctx, 0)) }()
		synctest.Wait()
		go func() { assert.Equal(t, gone, h.Do(ends, 1)) }()
		go func() { assert.NoError(t, h.Do(ctx, 2), "the end of one ctx is nothing to the others") }()
		synctest.Wait()
		assert.Equal(t, 2, h.Waiting())
		end(gone)
		synctest.Wait()
		assert.Equal(t, 1, h.Waiting())
		close(h.release)
		h.Idle()
		assert.Equal(t, [][]int{{0}, {2}}, h.calls)
		assert.Zero(t, h.Waiting())
	})
}

func TestARoundThatAllHaveLeftIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(100, 1, nil, fine)
		ends, end := context.WithCancel(ctx)
		go func() { assert.NoError(t, h.Do(ctx, 0)) }()
		synctest.Wait()
		go func() { assert.ErrorIs(t, h.Do(ends, 1), context.Canceled) }()
		synctest.Wait()
		end()
		synctest.Wait()
		close(h.release)
		h.Idle()
		assert.Len(t, h.calls, 1)
	})
}

func TestWhoLeavesWhatIsBeingServedIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(100, 1, nil, fine)
		ends, end := context.WithCancel(ctx)
		go func() {
			err := h.Do(ends, 1)
			assert.ErrorIs(t, err, group.ErrLeft)
			assert.ErrorIs(t, err, context.Canceled)
		}()
		synctest.Wait()
		end()
		synctest.Wait()
		close(h.release)
		h.Idle()
		assert.Equal(t, [][]int{{1}}, h.calls)
	})
}

func TestTheErrorOfARoundIsToldToAllOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := errors.New("no")
		h := hold(100, 1, nil, func(items []int) error {
			if len(items) == 3 {
				return no
			}
			return nil
		})
		go func() { assert.NoError(t, h.Do(ctx, 0)) }()
		synctest.Wait()
		for i := range 3 {
			go func() { assert.Equal(t, no, h.Do(ctx, i)) }()
		}
		synctest.Wait()
		close(h.release)
		h.Idle()
		assert.NoError(t, h.Do(ctx, 4))
	})
}

func TestAPanicOfServeIsNoSuccessForAnybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(100, 1, nil, func(items []int) error {
			if len(items) > 1 {
				panic("boom")
			}
			return nil
		})
		go func() { assert.NoError(t, h.Do(ctx, 0)) }()
		synctest.Wait()
		var failed atomic.Int64
		for i := range 10 {
			go func() {
				assert.ErrorContains(t, h.Do(ctx, i), "boom")
				failed.Add(1)
			}()
		}
		synctest.Wait()
		close(h.release)
		h.Idle()
		synctest.Wait()
		assert.EqualValues(t, 10, failed.Load())
		assert.NoError(t, h.Do(ctx, 0), "it goes on")
	})
}

func TestServeThatEndsItsGoroutineIsNoSuccess(t *testing.T) {
	h := hold(100, 1, nil, func(items []int) error { runtime.Goexit(); return nil })
	close(h.release)
	require.Error(t, h.Do(ctx, 0))
	require.Error(t, h.Do(ctx, 1), "it goes on")
}

// Every item is served once, whatever leaves, and no caller waits for ever.
func TestManyCallers(t *testing.T) {
	var served, answered atomic.Int64
	g := group.New(7, 3, nil, func(items []int) error {
		served.Add(int64(len(items)))
		runtime.Gosched()
		return nil
	})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for k := range 200 {
				ends, end := context.WithCancel(ctx)
				if (i+k)%5 == 0 {
					go end()
				}
				if err := g.Do(ends, k); err == nil || errors.Is(err, group.ErrLeft) {
					answered.Add(1)
				}
				end()
			}
		})
	}
	wg.Wait()
	g.Idle()
	assert.Equal(t, answered.Load(), served.Load())
}
