package look_test

import (
	"context"
	"errors"
	"fmt"
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
	slow   atomic.Int64
	fail   atomic.Pointer[error]
	silent string // a queue that cannot be read
}

func (c *counted) call(ctx context.Context) error {
	c.calls.Add(1)
	select {
	case <-time.After(time.Duration(c.slow.Load())):
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
		s.slow.Store(int64(time.Second))
		l := look.New(s)
		_, err := l.Look(ctx)
		require.NoError(t, err)
		one := s.calls.Load()
		time.Sleep(3*time.Second - 1)
		last, err := l.Look(ctx)
		require.NoError(t, err)
		assert.Equal(t, one, s.calls.Load())
		time.Sleep(time.Nanosecond)
		begin := time.Now()
		got, err := l.Look(ctx)
		require.NoError(t, err)
		assert.Same(t, last, got, "nobody waits for the next one")
		assert.Equal(t, 100*time.Millisecond, time.Since(begin))
		time.Sleep(3 * time.Second)
		assert.Equal(t, 2*one, s.calls.Load())
		got, err = l.Look(ctx)
		require.NoError(t, err)
		assert.NotSame(t, last, got)
	})
}

// A person who has done something sees its effect, also when a picture from before is being taken.
func TestWhatWasDoneIsInTheNextPicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := open(t)
		add(t, q, 1)
		l := look.New(s)
		_, err := l.Look(ctx)
		require.NoError(t, err)
		for _, under := range []bool{false, true} {
			time.Sleep(time.Minute)
			s.slow.Store(int64(time.Second))
			if under {
				go func() { _, _ = l.Look(ctx) }()
				time.Sleep(2500 * time.Millisecond) // the figures are read
			}
			s.slow.Store(0)
			add(t, q, 1)
			l.Stale()
			st, err := q.Stats(ctx)
			require.NoError(t, err)
			got, err := l.Look(ctx)
			require.NoError(t, err)
			assert.Equal(t, st.States[taskqueue.StateReady], got.Queues[0].States[taskqueue.StateReady])
			add(t, q, 1)
			l.Stale()
			got, err = l.Look(ctx)
			require.NoError(t, err)
			assert.Equal(t, st.States[taskqueue.StateReady]+1, got.Queues[0].States[taskqueue.StateReady], "also within the second")
		}
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
		s.slow.Store(int64(time.Hour))
		got, err := l.Look(ctx)
		assert.NoError(t, err)
		assert.Same(t, before, got, "it may answer yet")
		time.Sleep(5 * time.Second)
		got, err = l.Look(ctx)
		assert.ErrorContains(t, err, "not answered for 5s")
		assert.Same(t, before, got)
		one := s.calls.Load()
		_, err = l.Look(ctx)
		require.Error(t, err)
		assert.Equal(t, one, s.calls.Load(), "a store that is down is not asked at once again")
		down := errors.New("down")
		s.slow.Store(0)
		s.fail.Store(&down)
		time.Sleep(5 * time.Second)
		_, err = l.Look(ctx)
		assert.ErrorIs(t, err, down)
		s.fail.Store(nil)
		_, err = l.Look(ctx)
		assert.ErrorIs(t, err, down, "it has failed a moment ago, and that stands")
		l.Stale()
		got, err = l.Look(ctx)
		require.NoError(t, err)
		assert.NotSame(t, before, got)
	})
}

func TestOneWhoGoesAwayDoesNotSpoilThePictureForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := open(t)
		add(t, q, 1)
		s.slow.Store(int64(time.Second))
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

func TestFailuresAreGroupedByTypeAndError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := open(t)
		q := root.In("mail")
		for i := range 5 {
			time.Sleep(time.Second)
			for _, kind := range []string{"t", "u"} {
				_, err := q.Enqueue(ctx, taskqueue.Task{ID: fmt.Sprint(kind, 1000+i), Type: kind, MaxFailures: 2})
				require.NoError(t, err)
			}
			require.NoError(t, q.Work(ctx, taskqueue.Handlers{
				"t": func(_ context.Context, c *taskqueue.Claim) error {
					return taskqueue.Dead(fmt.Errorf("task %s: status %d\u202e\nand %d", c.ID, 503+i/4, i))
				},
				"u": func(_ context.Context, c *taskqueue.Claim) error {
					return taskqueue.RetryAfter(time.Hour, fmt.Errorf("no answer after %dms", 1000+i))
				},
			}, taskqueue.WorkUntilEmpty()))
		}
		got, err := look.New(s).Look(ctx)
		require.NoError(t, err)
		require.Len(t, got.Failures, 3)
		f := got.Failures[0]
		assert.Equal(t, []any{"mail", "t", 4, 0, "t1003"}, []any{f.Queue, f.Type, f.Dead, f.Retrying, f.ID})
		assert.Contains(t, f.Alike, "status 503", "a short number tells errors apart")
		assert.Contains(t, f.Error, "status 503\\u{202e}\nand 3", "the last one whole, and fit to be shown")
		assert.Contains(t, got.Failures[1].Alike, "status 504")
		f = got.Failures[2]
		assert.Equal(t, []any{"u", 0, 5, "u1004", "no answer after #"}, []any{f.Type, f.Dead, f.Retrying, f.ID, f.Alike})
		assert.False(t, f.MoreRetrying)
		assert.Len(t, got.Of("mail").Failures, 3)
		assert.Empty(t, got.Of("other").Failures)
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
