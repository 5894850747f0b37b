package taskqueue_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// slowSettles is a store that takes a second to settle, and notes what it was asked
// for. It refuses outcomes with the result "wrong".
type slowSettles struct {
	taskqueue.Store
	mu      sync.Mutex
	settles []int // how many outcomes each call had
}

func (s *slowSettles) Settle(ctx context.Context, queue string, all []store.Outcome) ([]store.SettleResult, error) {
	s.mu.Lock()
	s.settles = append(s.settles, len(all))
	s.mu.Unlock()
	time.Sleep(time.Second)
	if slices.ContainsFunc(all, func(o store.Outcome) bool { return string(o.Result) == "wrong" }) {
		return nil, &taskqueue.InvalidError{What: "Result", Why: "it is wrong"}
	}
	return s.Store.Settle(ctx, queue, all)
}

func newSlowSettles(t *testing.T, n int) (*taskqueue.Queue, *slowSettles) {
	t.Helper()
	s := &slowSettles{Store: memstore.New()}
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	for i := range n {
		_, err := q.Enqueue(t.Context(), taskqueue.Task{ID: fmt.Sprint(i), Type: "t"})
		require.NoError(t, err)
	}
	return q, s
}

func TestWhatEndsWhileOthersAreSettledIsSettledTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newSlowSettles(t, 20)
		h := taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
			if c.ID != "0" {
				time.Sleep(time.Millisecond)
			}
			return nil
		}}
		require.NoError(t, q.Work(t.Context(), h, taskqueue.Concurrency(10), taskqueue.WorkUntilEmpty()))
		assert.Equal(t, []int{1, 19}, s.settles)
	})
}

func TestWhatIsToBeSettledWhenTheWorkerStopsIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newSlowSettles(t, 10)
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		ends := 0
		h := taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
			mu.Lock()
			defer mu.Unlock()
			if ends++; ends == 10 {
				stop()
			}
			return nil
		}}
		require.NoError(t, q.Work(ctx, h, taskqueue.Concurrency(10)))
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 10, stats.States[taskqueue.StateDone])
		assert.LessOrEqual(t, len(s.settles), 10)
	})
}

func TestAnOutcomeThatTheStoreRefusesFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newSlowSettles(t, 10)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		h := taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
			if c.ID != "0" { // which is settled while the others end
				time.Sleep(time.Millisecond)
			}
			if c.ID == "5" && c.Crashes == 0 {
				c.SetResult([]byte("wrong"))
			}
			return nil
		}}
		err := q.Work(ctx, h, taskqueue.Concurrency(10), taskqueue.Lease(10*time.Minute))
		var unsettled *taskqueue.UnsettledError
		require.ErrorAs(t, err, &unsettled)
		assert.Equal(t, []string{"5"}, unsettled.IDs)
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 9, stats.States[taskqueue.StateDone])
	})
}

func TestAPlaceIsFreeWhenItsHandlerHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newSlowSettles(t, 8)
		begin := time.Now()
		var mu sync.Mutex
		var starts []time.Duration
		h := taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
			mu.Lock()
			defer mu.Unlock()
			starts = append(starts, time.Since(begin))
			return nil
		}}
		require.NoError(t, q.Work(t.Context(), h, taskqueue.Concurrency(1), taskqueue.WorkUntilEmpty()))
		// A run begins and ends at the moment at which a call is made: whether that takes it
		// along is open.
		assert.Equal(t, make([]time.Duration, 5), starts[:5], "four more than there are places, until those are settled")
		assert.GreaterOrEqual(t, starts[5], time.Second)
		assert.LessOrEqual(t, slices.Max(s.settles), 5)
		assert.Equal(t, 8, sum(s.settles))
	})
}

func sum(of []int) (n int) {
	for _, i := range of {
		n += i
	}
	return n
}

func TestNoMoreHandlersRunThanThereArePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newSlowSettles(t, 60)
		var mu sync.Mutex
		now, most := 0, 0
		h := taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Duration(c.Token%7) * 300 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			now--
			return nil
		}}
		require.NoError(t, q.Work(t.Context(), h, taskqueue.Concurrency(7), taskqueue.WorkUntilEmpty()))
		assert.Equal(t, 7, most)
	})
}
