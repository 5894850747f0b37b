package taskqueue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/clitest"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/sqlstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func TestMain(m *testing.M) {
	if os.Getenv(asSuspended) != "" {
		suspended()
		return
	}
	os.Exit(clitest.LeakChecked(m).Run())
}

func newQueue(t *testing.T) (*taskqueue.Queue, taskqueue.Store) {
	s := memstore.New()
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	return q, s
}

func add(t *testing.T, q *taskqueue.Queue, task taskqueue.Task) string {
	t.Helper()
	id, err := q.Enqueue(context.Background(), task)
	require.NoError(t, err)
	return id
}

// nothing is a handler that does nothing.
func nothing(context.Context, *taskqueue.Claim) error { return nil }

func TestATaskRunsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		begin := time.Now()
		id := add(t, q, taskqueue.Task{Type: "mail", Delay: time.Minute, Payload: []byte(`"to"`), Retention: time.Hour})
		var ran time.Duration
		ctx, stop := context.WithCancel(context.Background())
		err := q.Work(ctx, taskqueue.Handlers{"mail": func(_ context.Context, c *taskqueue.Claim) error {
			ran = time.Since(begin)
			c.SetResult([]byte("sent"))
			stop()
			return nil
		}})
		require.NoError(t, err)
		assert.GreaterOrEqual(t, ran, time.Minute)
		assert.Less(t, ran, time.Minute+time.Millisecond)
		i, err := q.Wait(context.Background(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateDone, i.State)
		assert.Equal(t, "sent", string(i.Result))
	})
}

// The end of a handler, and the outcome of its task.
func TestTheHandlerDecides(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		handler  taskqueue.Handler
		state    taskqueue.State
		runs     int
		failures int
	}{
		"nil":      {func(context.Context, *taskqueue.Claim) error { return nil }, taskqueue.StateDone, 1, 0},
		"an error": {func(context.Context, *taskqueue.Claim) error { return boom }, taskqueue.StateDead, 3, 3},
		"a panic":  {func(context.Context, *taskqueue.Claim) error { panic(boom) }, taskqueue.StateDead, 3, 3},
		"Goexit":   {func(context.Context, *taskqueue.Claim) error { runtime.Goexit(); return nil }, taskqueue.StateDead, 3, 3},
		"dead":     {func(context.Context, *taskqueue.Claim) error { return taskqueue.Dead(boom) }, taskqueue.StateDead, 1, 1},
		"a child fails": {func(ctx context.Context, _ *taskqueue.Claim) error {
			async.Go(ctx, func(context.Context) error { return boom })
			return nil
		}, taskqueue.StateDead, 3, 3},
		"retried": {func(_ context.Context, c *taskqueue.Claim) error {
			if c.Attempt < 2 {
				return taskqueue.RetryAfter(time.Second, boom)
			}
			return nil
		}, taskqueue.StateDone, 2, 1},
		"a wrong payload": {taskqueue.Typed(func(context.Context, int) error { return nil }), taskqueue.StateDead, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _ := newQueue(t)
				id := add(t, q, taskqueue.Task{Type: "t", MaxFailures: 3, Payload: []byte(`"text"`)})
				runs := 0
				h := func(ctx context.Context, cl *taskqueue.Claim) error { runs++; return c.handler(ctx, cl) }
				ctx, stop := context.WithCancel(context.Background())
				defer stop()
				go func() {
					_, _ = q.Wait(ctx, id)
					stop()
				}()
				require.NoError(t, q.Work(ctx, taskqueue.Handlers{"t": h}))
				i, err := q.Get(context.Background(), id)
				require.NoError(t, err)
				assert.Equal(t, c.state, i.State)
				assert.Equal(t, c.failures, i.Failures)
				assert.Equal(t, c.runs, runs)
			})
		})
	}
}

func TestWhatRunsLongerThanALeaseKeepsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		add(t, q, taskqueue.Task{Type: "t"})
		runs := 0
		err := q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			runs++
			return async.Sleep(ctx, time.Hour)
		}}, taskqueue.WorkUntilEmpty(), taskqueue.Lease(3*time.Second))
		require.NoError(t, err)
		assert.Equal(t, 1, runs)
	})
}

func TestCancelReachesTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "t"})
		var cause error
		go func() {
			time.Sleep(time.Second)
			ok, err := q.Cancel(context.Background(), id)
			assert.True(t, ok)
			assert.NoError(t, err)
		}()
		err := q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}}, taskqueue.WorkUntilEmpty())
		require.NoError(t, err)
		assert.Equal(t, taskqueue.ErrCancelled, cause)
		i, err := q.Get(context.Background(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateCancelled, i.State)
	})
}

// A store whose answers are lost from a moment on.
type cutOff struct {
	taskqueue.Store
	mu  sync.Mutex
	cut bool
}

func (s *cutOff) off(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
}

func (s *cutOff) Extend(ctx context.Context, r store.ExtendRequest) ([]store.ExtendResult, error) {
	s.mu.Lock()
	cut := s.cut
	s.mu.Unlock()
	if cut {
		return nil, errors.New("no answer")
	}
	return s.Store.Extend(ctx, r)
}

func TestALostLeaseStopsTheHandlerInTimeAndSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &cutOff{Store: memstore.New(), cut: true}
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		id := add(t, q, taskqueue.Task{Type: "t"})
		begin := time.Now()
		var lost time.Duration
		runs := 0
		work, stop := context.WithCancel(t.Context())
		defer stop()
		err = q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			if runs++; runs > 1 {
				stop()
				return nil
			}
			<-ctx.Done()
			lost = time.Since(begin)
			assert.Equal(t, taskqueue.ErrLeaseLost, context.Cause(ctx))
			time.Sleep(time.Minute) // it does not care
			s.off(false)
			return nil
		}}, taskqueue.Lease(30*time.Second), taskqueue.Concurrency(1))
		require.NoError(t, err)
		assert.Less(t, lost, 30*time.Second)
		assert.Equal(t, 2, runs)
		i, err := q.Get(context.Background(), id)
		require.NoError(t, err)
		assert.Equal(t, 1, i.Crashes)
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		quick, slow := add(t, q, taskqueue.Task{Type: "quick"}), add(t, q, taskqueue.Task{Type: "slow"})
		ctx, stop := context.WithCancel(context.Background())
		running := 0
		time.AfterFunc(time.Second, stop)
		err := q.Work(ctx, taskqueue.Handlers{
			"quick": func(ctx context.Context, _ *taskqueue.Claim) error { return async.Sleep(ctx, 5*time.Second) },
			"slow": func(ctx context.Context, _ *taskqueue.Claim) error {
				running++
				defer func() { running-- }()
				return async.Sleep(ctx, time.Hour)
			},
		}, taskqueue.ShutdownGrace(10*time.Second))
		require.NoError(t, err)
		assert.Zero(t, running)
		i, err := q.Get(context.Background(), quick)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateDone, i.State, "it had the grace")
		i, err = q.Get(context.Background(), slow)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateReady, i.State, "it was given back")
		assert.Zero(t, i.Attempt+i.Failures+i.Crashes)
	})
}

func TestAnUnknownTypeIsLeftToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "new"})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.NoError(t, q.Work(ctx, taskqueue.Handlers{"old": nothing}))
		i, err := q.Get(context.Background(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateScheduled, i.State)
		assert.Zero(t, i.Attempt+i.Failures)
		assert.Less(t, i.Releases, 20)
	})
}

func TestAThousandTasksInASQLiteFile(t *testing.T) {
	s, err := sqlstore.OpenFile(t.Context(), filepath.Join(t.TempDir(), "tasks"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	var tasks []taskqueue.Task
	for i := range 1000 {
		tasks = append(tasks, taskqueue.Task{ID: fmt.Sprint(i), Type: "t"})
	}
	_, err = q.EnqueueAll(t.Context(), tasks)
	require.NoError(t, err)
	var mu sync.Mutex
	ran := map[string]int{}
	err = q.Work(t.Context(), taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
		mu.Lock()
		defer mu.Unlock()
		ran[c.ID]++
		return nil
	}}, taskqueue.WorkUntilEmpty(), taskqueue.Concurrency(50))
	require.NoError(t, err)
	assert.Len(t, ran, 1000)
	for id, n := range ran {
		assert.Equal(t, 1, n, id)
	}
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1000, stats.States[taskqueue.StateDone])
}
