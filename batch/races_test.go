package batch

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// Orders of events that come about by chance, made here by hand.

// The exit hook comes while a flusher that was started after the last join flushes.
func TestTheEndComesWhileSomethingIsBeingFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flushes [][]int
		busy := false
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := New(ctx, func(ctx context.Context, items []int) error {
				assert.False(t, busy, "two flushes at a time")
				busy = true
				flushes = append(flushes, items)
				err := async.Sleep(ctx, time.Hour)
				busy = false
				return err
			}, Items(1))
			require.NoError(t, b.Add(ctx, 1))
			synctest.Wait()
			require.NoError(t, b.Add(ctx, 2))
			assert.NoError(t, b.end(ctx, nil), "it leaves the last flush to another hook")
			assert.ErrorIs(t, b.Add(ctx, 3), async.ErrScopeEnded)
			return nil
		}, async.HookTimeout(2*time.Hour))
		require.NoError(t, err)
		assert.Equal(t, [][]int{{1}, {2}}, flushes)
	})
}

// The timer has fired, and what it was set for is flushed before it has the lock.
func TestATimerThatComesTooLateFlushesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flushes := 0
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := New(ctx, func(context.Context, []int) error {
				flushes++
				return nil
			}, Age(time.Minute))
			require.NoError(t, b.Add(ctx, 1))
			b.timeIsUp()
			require.NoError(t, async.Sleep(ctx, time.Minute-time.Millisecond))
			assert.Zero(t, flushes, "it is not old enough")
			require.NoError(t, b.Flush(ctx))
			b.timeIsUp()
			require.NoError(t, async.Sleep(ctx, time.Hour))
			assert.Equal(t, 1, flushes, "there is nothing")
			return nil
		})
		require.NoError(t, err)
	})
}

// A flusher was claimed by a goroutine that is no task of the scope, and has not
// been started when the exit hook comes: the scope must not end before it was.
func TestTheEndWaitsForAFlusherThatIsBeingStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flushes := 0
		err := async.Scope(t.Context(), func(ctx context.Context) error {
			b := New(ctx, func(context.Context, []int) error {
				flushes++
				return nil
			})
			require.NoError(t, b.Add(ctx, 1))
			b.mu.Lock()
			b.aged = true
			require.True(t, b.claimLocked())
			b.mu.Unlock()

			ended := make(chan struct{})
			go func() {
				defer close(ended)
				assert.NoError(t, b.end(ctx, nil))
			}()
			synctest.Wait()
			select {
			case <-ended:
				t.Error("it did not wait")
			default:
			}
			b.start()
			<-ended
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, 1, flushes)
	})
}

// Room is made for an Add in the instant in which its ctx ends. Its items count as
// added, so it must not say that they are not.
func TestAnAddThatIsCutShortWhenItWasAcceptedSaysSo(t *testing.T) {
	var got []int
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		b := New(ctx, func(_ context.Context, items []int) error {
			got = items
			return nil
		}, Capacity(1))
		w := b.newWaiter(ofAdd)
		w.items = []int{1}
		b.mu.Lock()
		b.adders = append(b.adders, w)
		assert.Len(t, b.admitLocked(), 1)
		b.mu.Unlock()
		over, cancel := context.WithCancel(ctx)
		cancel()
		answer, short := b.wait(over, w)
		assert.NoError(t, answer)
		assert.False(t, short)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, []int{1}, got)
}

// A scope that has left a flush behind may take no wait for it any more. Then nobody
// spins: the call says that the item was under way.
func TestDoThatCannotWaitForTheFlushOfItsItemDoesNotSpin(t *testing.T) {
	var b *Batch[int]
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		b = New(ctx, func(context.Context, []int) error { return nil })
		return nil
	}))
	w := b.newWaiter(ofDo)
	w.taken = true
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error, 1)
	go func() { told <- b.waitForAnswer(ctx, w) }()
	for begun := time.Now(); time.Since(begun) < time.Minute; { // it is told at once, if it has its turn
		select {
		case err := <-told:
			assert.ErrorIs(t, err, ErrUnderWay)
			assert.ErrorIs(t, err, async.ErrScopeEnded)
			cancel()
			return
		default:
			runtime.Gosched()
		}
	}
	cancel()
	<-told
	t.Error("it spins")
}
