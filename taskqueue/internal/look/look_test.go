package look_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

var ctx = context.Background()

// A counted store counts the calls that look at it, and fails if it is told so.
type counted struct {
	taskqueue.Store
	calls  atomic.Int64
	slow   time.Duration
	fail   atomic.Pointer[error]
	silent string // a queue that cannot be read
}

func (c *counted) call(ctx context.Context) error {
	c.calls.Add(1)
	select {
	case <-time.After(c.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := c.fail.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *counted) Queues(ctx context.Context) ([]string, error) {
	if err := c.call(ctx); err != nil {
		return nil, err
	}
	return c.Store.Queues(ctx)
}

func (c *counted) Stats(ctx context.Context, queue string) (taskqueue.Stats, error) {
	if err := c.call(ctx); err != nil {
		return taskqueue.Stats{}, err
	}
	if queue == c.silent {
		return taskqueue.Stats{}, errors.New("damaged")
	}
	return c.Store.Stats(ctx, queue)
}

func (c *counted) List(ctx context.Context, queue string, r taskqueue.ListRequest) (taskqueue.Page, error) {
	if err := c.call(ctx); err != nil {
		return taskqueue.Page{}, err
	}
	return c.Store.List(ctx, queue, r)
}

func (c *counted) Periodic(ctx context.Context, queue string) ([]taskqueue.Periodic, error) {
	if err := c.call(ctx); err != nil {
		return nil, err
	}
	return c.Store.Periodic(ctx, queue)
}

func open(t *testing.T) (*counted, *taskqueue.Queue) {
	t.Helper()
	s := &counted{Store: memstore.New()}
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	return s, q
}

func add(t *testing.T, q *taskqueue.Queue, n int) {
	t.Helper()
	tasks := make([]taskqueue.Task, n)
	for i := range tasks {
		tasks[i] = taskqueue.Task{Type: "t", Payload: []byte("p")}
	}
	_, err := q.EnqueueAll(ctx, tasks)
	require.NoError(t, err)
}

func work(t *testing.T, q *taskqueue.Queue, h taskqueue.Handler) {
	t.Helper()
	require.NoError(t, q.Work(ctx, taskqueue.Handlers{"t": h}, taskqueue.WorkUntilEmpty()))
}

func TestManyWhoLookCostTheStoreOnePictureASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := open(t)
		add(t, q, 1)
		l := look.New(s)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				for range 10 {
					got, err := l.Look(ctx)
					assert.NoError(t, err)
					assert.Len(t, got.Queues, 1)
				}
			})
		}
		all.Wait()
		one := s.calls.Load()
		assert.EqualValues(t, 3, one, "queues, stats, periodic jobs; no list of what there is not")
		time.Sleep(999 * time.Millisecond)
		_, err := l.Look(ctx)
		require.NoError(t, err)
		assert.Equal(t, one, s.calls.Load())
		time.Sleep(time.Millisecond)
		_, err = l.Look(ctx)
		require.NoError(t, err)
		assert.Equal(t, 2*one, s.calls.Load())
	})
}

func TestASlowStoreHasARestAsLongAsThePictureTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := open(t)
		add(t, q, 1)
		s.slow = time.Second
		l := look.New(s)
		_, err := l.Look(ctx)
		require.NoError(t, err)
		one := s.calls.Load()
		time.Sleep(3*time.Second - 1)
		_, err = l.Look(ctx)
		require.NoError(t, err)
		assert.Equal(t, one, s.calls.Load())
		time.Sleep(time.Nanosecond)
		_, err = l.Look(ctx)
		require.NoError(t, err)
		assert.Equal(t, 2*one, s.calls.Load())
	})
}

func TestAStoreThatDoesNotAnswerLeavesTheLastPicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := open(t)
		add(t, q, 2)
		l := look.New(s)
		before, err := l.Look(ctx)
		require.NoError(t, err)
		time.Sleep(time.Second)
		s.slow = time.Hour
		got, err := l.Look(ctx)
		assert.ErrorContains(t, err, "not answered for 5s")
		assert.Same(t, before, got)
		one := s.calls.Load()
		_, err = l.Look(ctx)
		require.Error(t, err)
		assert.Equal(t, one, s.calls.Load(), "a store that is down is not asked at once again")
		down := errors.New("down")
		s.slow = 0
		s.fail.Store(&down)
		time.Sleep(5 * time.Second)
		_, err = l.Look(ctx)
		assert.ErrorIs(t, err, down)
		s.fail.Store(nil)
		assert.ErrorIs(t, l.Sample(ctx), down, "it has failed a moment ago, and that stands")
		time.Sleep(time.Second)
		require.NoError(t, l.Sample(ctx))
		got, err = l.Look(ctx)
		require.NoError(t, err)
		assert.NotSame(t, before, got, "a sample is no picture")
	})
}

func TestOneWhoGoesAwayDoesNotSpoilThePictureForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := open(t)
		add(t, q, 1)
		s.slow = time.Second
		l := look.New(s)
		first, leave := context.WithCancel(ctx)
		var all sync.WaitGroup
		all.Go(func() { _, _ = l.Look(first) })
		synctest.Wait()
		all.Go(func() {
			got, err := l.Look(ctx)
			assert.NoError(t, err)
			assert.NotNil(t, got)
		})
		second, leaveToo := context.WithCancel(ctx)
		all.Go(func() {
			_, err := l.Look(second)
			assert.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		leave()
		leaveToo()
		all.Wait()
		assert.EqualValues(t, 3, s.calls.Load())
	})
}

func TestRatesAreMadeFromCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := open(t)
		l := look.New(s)
		add(t, q, 1)
		got, err := l.Look(ctx)
		require.NoError(t, err)
		assert.Nil(t, got.Queues[0].Rates, "one picture tells none")
		for range 10 {
			time.Sleep(5 * time.Second)
			add(t, q, 50)
			work(t, q, func(context.Context, *taskqueue.Claim) error { return nil })
			require.NoError(t, l.Sample(ctx))
		}
		time.Sleep(time.Second)
		got, err = l.Look(ctx)
		require.NoError(t, err)
		r := got.Queues[0]
		assert.Greater(t, r.RateSeconds, 10.0)
		assert.Less(t, r.RateSeconds, 20.0)
		assert.InDelta(t, 100, r.Rates[taskqueue.CountDone]*r.RateSeconds, 0.1)
		assert.Zero(t, r.Rates[taskqueue.CountFailed])
		require.Len(t, r.History, 10)
		assert.InDelta(t, 50, r.History[9].Done*r.History[9].At.Sub(r.History[8].At).Seconds(), 0.1)

		time.Sleep(time.Hour)
		got, err = l.Look(ctx)
		require.NoError(t, err)
		assert.Nil(t, got.Queues[0].Rates, "an hour in which nobody has looked tells nothing about now")
	})
}

func TestAHistoryHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := open(t)
		add(t, q, 1)
		l := look.New(s)
		for range 500 {
			require.NoError(t, l.Sample(ctx))
			time.Sleep(look.Step)
		}
		got, err := l.Look(ctx)
		require.NoError(t, err)
		assert.Len(t, got.Queues[0].History, 119)
	})
}

func TestWhatAPictureTellsOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := open(t)
		q := root.In("mail")
		_, err := q.EnqueueAll(ctx, []taskqueue.Task{
			{ID: "long", Type: "t", Payload: []byte(strings.Repeat("ü", 5000))},
			{ID: "bad", Type: "t", Payload: []byte("\x1b[2J\x00")},
		})
		require.NoError(t, err)
		work(t, q, func(_ context.Context, c *taskqueue.Claim) error {
			return taskqueue.Dead(fmt.Errorf("no %s\u202e", c.ID))
		})
		for i := range 30 {
			time.Sleep(time.Second)
			_, err := q.Enqueue(ctx, taskqueue.Task{ID: fmt.Sprint(i), Type: "t"})
			require.NoError(t, err)
			work(t, q, func(context.Context, *taskqueue.Claim) error { return taskqueue.Dead(errors.New("no")) })
		}
		l := look.New(s)
		got, err := l.Look(ctx)
		require.NoError(t, err)
		require.Len(t, got.Dead, look.MaxTasks)
		assert.Equal(t, "29", got.Dead[0].ID, "the last comes first")
		assert.Empty(t, got.Running)

		for i := range 30 {
			_, err := q.Delete(ctx, fmt.Sprint(i))
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		got, err = l.Look(ctx)
		require.NoError(t, err)
		require.Len(t, got.Dead, 2)
		for _, d := range got.Dead {
			assert.Equal(t, `no `+d.ID+`\u{202e}`, d.Error)
			if d.ID == "bad" {
				assert.Equal(t, `\x1b[2J\x00`, d.Payload)
				continue
			}
			assert.Equal(t, strings.Repeat("ü", 100)+"…", d.Payload)
			assert.Equal(t, 10_000, d.PayloadBytes)
		}
		assert.Len(t, got.Of("mail").Dead, 2)
		assert.Empty(t, got.Of("other").Dead)
	})
}

func TestOneQueueThatCannotBeReadDoesNotHideTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := open(t)
		add(t, q.In("a"), 1)
		add(t, q.In("b"), 1)
		s.silent = "a"
		got, err := look.New(s).Look(ctx)
		require.NoError(t, err)
		require.Len(t, got.Queues, 2)
		assert.Equal(t, "damaged", got.Queues[0].Error)
		assert.EqualValues(t, 1, got.Queues[1].States[taskqueue.StateReady])
		_, err = look.New(s, "a").Look(ctx)
		assert.ErrorContains(t, err, "queue a: damaged", "if it is the only one there is nothing to show")
	})
}

func TestNoMoreThanAHundredQueuesAreLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := open(t)
		for i := range 130 {
			add(t, q.In(fmt.Sprintf("q%03d", i)), 1)
		}
		got, err := look.New(s).Look(ctx)
		require.NoError(t, err)
		assert.Len(t, got.Queues, look.MaxQueues)
		assert.Equal(t, 30, got.MoreQueues)
		got, err = look.New(s, "q129").Look(ctx)
		require.NoError(t, err)
		require.Len(t, got.Queues, 1)
		assert.EqualValues(t, 1, got.Queues[0].States[taskqueue.StateReady])
	})
}
