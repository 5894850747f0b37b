package taskqueue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// An outage is a store that cannot be reached while it is down. dropAnswers: calls are
// carried out, and their answers get lost.
type outage struct {
	taskqueue.Store
	mu          sync.Mutex
	down        bool
	dropAnswers bool
	settles     int // that failed
}

var errDown = errors.New("the store is down")

func (s *outage) set(down, drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.dropAnswers = down, drop
}

func (s *outage) call(f func()) error {
	s.mu.Lock()
	down, drop := s.down, s.dropAnswers
	s.mu.Unlock()
	if !down || drop {
		f()
	}
	if down {
		return errDown
	}
	return nil
}

func (s *outage) Claim(ctx context.Context, r store.ClaimRequest) (got taskqueue.Claimed, err error) {
	if e := s.call(func() { got, err = s.Store.Claim(ctx, r) }); e != nil {
		return taskqueue.Claimed{}, e
	}
	return got, err
}

func (s *outage) Extend(ctx context.Context, r store.ExtendRequest) (got []store.ExtendResult, err error) {
	if e := s.call(func() { got, err = s.Store.Extend(ctx, r) }); e != nil {
		return nil, e
	}
	return got, err
}

func (s *outage) Settle(ctx context.Context, queue string, all []store.Outcome) (got []store.SettleResult, err error) {
	if e := s.call(func() { got, err = s.Store.Settle(ctx, queue, all) }); e != nil {
		s.mu.Lock()
		s.settles++
		s.mu.Unlock()
		return nil, e
	}
	return got, err
}

func newOutage(t *testing.T) (*taskqueue.Queue, *outage) {
	s := &outage{Store: memstore.New()}
	q, err := taskqueue.New(s)
	require.NoError(t, err)
	return q, s
}

// asynq PR #926: there the context of the retried acknowledgement was done already,
// and the task ran again.
func TestAnOutageOfTwoSecondsAtSettlingLosesNoOutcome(t *testing.T) {
	for name, drop := range map[string]bool{"calls": false, "answers": true} {
		t.Run(name+" get lost", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, s := newOutage(t)
				id := add(t, q, taskqueue.Task{Type: "t"})
				runs := 0
				work, stop := context.WithCancel(t.Context())
				defer stop()
				require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
					runs++
					s.set(true, drop)
					stop() // the context of the worker is done
					time.AfterFunc(2*time.Second, func() { s.set(false, false) })
					return nil
				}}, taskqueue.Lease(time.Second)))
				assert.Equal(t, 1, runs)
				assert.Positive(t, s.settles)
				i, err := q.Get(t.Context(), id)
				require.NoError(t, err)
				assert.Equal(t, taskqueue.StateDone, i.State)
				assert.Zero(t, i.Crashes)
			})
		})
	}
}

func TestAStopWithTheStoreDownNamesWhatIsNotSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newOutage(t)
		ids := []string{add(t, q, taskqueue.Task{Type: "t"}), add(t, q, taskqueue.Task{Type: "t"})}
		work, stop := context.WithCancel(t.Context())
		defer stop()
		begin := time.Now()
		err := q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			s.set(true, false)
			time.AfterFunc(time.Second, stop)
			return async.Sleep(ctx, time.Hour)
		}}, taskqueue.Lease(30*time.Second), taskqueue.ShutdownGrace(5*time.Second))
		var unsettled *taskqueue.UnsettledError
		require.ErrorAs(t, err, &unsettled)
		assert.Equal(t, ids, unsettled.IDs)
		assert.ErrorIs(t, err, errDown)
		assert.Less(t, time.Since(begin), 2*time.Minute)
		s.set(false, false)
		for _, id := range ids {
			i, err := q.Get(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, taskqueue.StateRunning, i.State)
		}
	})
}

// A task that was claimed for a worker that stops is not held for nobody.
func TestAClaimWhoseAnswerIsLostWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newOutage(t)
		work, stop := context.WithCancel(t.Context())
		defer stop()
		id := add(t, q, taskqueue.Task{Type: "t", Delay: 10 * time.Second})
		time.AfterFunc(10*time.Second-time.Microsecond, func() { s.set(true, true) }) // so the claim at 10 s is the first whose answer is lost
		time.AfterFunc(10*time.Second+10*time.Millisecond, func() { s.set(false, false); stop() })
		runs := 0
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error { runs++; return nil }}))
		i, err := q.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateDone, i.State)
		assert.Equal(t, 1, runs)
	})
}

func TestAHandlerThatReturnsTheErrorOfItsContextWhenStoppedIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newOutage(t)
		id := add(t, q, taskqueue.Task{Type: "t"})
		work, stop := context.WithCancel(t.Context())
		defer stop()
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			stop()
			<-ctx.Done()
			return ctx.Err()
		}}, taskqueue.ShutdownGrace(time.Second)))
		i, err := q.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateReady, i.State)
		assert.Zero(t, i.Attempt+i.Failures)
	})
}

// The claim that says that nothing is due was made before the handler enqueued more.
func TestWorkUntilEmptySeesWhatTheLastRunHasEnqueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowAnswers{Store: memstore.New()}
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		add(t, q, taskqueue.Task{Type: "t", Payload: []byte("5")})
		runs := 0
		require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
			runs++
			if err := async.Sleep(ctx, 150*time.Millisecond); err != nil {
				return err
			}
			if left := c.Payload[0] - '0'; left > 0 {
				_, err := q.Enqueue(ctx, taskqueue.Task{Type: "t", Payload: []byte{'0' + left - 1}})
				return err
			}
			return nil
		}}, taskqueue.WorkUntilEmpty(), taskqueue.Concurrency(2)))
		assert.Equal(t, 6, runs)
	})
}

// slowAnswers takes a tenth of a second to tell what a claim has got.
type slowAnswers struct{ taskqueue.Store }

func (s *slowAnswers) Claim(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error) {
	got, err := s.Store.Claim(ctx, r)
	time.Sleep(100 * time.Millisecond)
	return got, err
}

func TestQueuesShareThePlacesByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newOutage(t)
		var tasks []taskqueue.Task
		for i := range 400 {
			for _, name := range []string{"a", "b"} {
				tasks = append(tasks, taskqueue.Task{ID: fmt.Sprint(i), Type: "t", Queue: name})
			}
		}
		_, err := q.EnqueueAll(t.Context(), tasks)
		require.NoError(t, err)
		work, stop := context.WithCancel(t.Context())
		defer stop()
		var mu sync.Mutex
		ran := map[string]int{}
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
			mu.Lock()
			ran[c.Queue]++
			n := ran["a"] + ran["b"]
			mu.Unlock()
			if n == 200 {
				stop()
			}
			return async.Sleep(ctx, time.Second)
		}}, taskqueue.Queues(map[string]int{"a": 3, "b": 1}), taskqueue.Concurrency(4)))
		assert.InDelta(t, 150, ran["a"], 8)
		assert.InDelta(t, 50, ran["b"], 8)
	})
}

func TestAQueueThatHasNothingLeavesItsPlacesToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newOutage(t)
		for range 4 {
			add(t, q, taskqueue.Task{Type: "t", Queue: "a"})
		}
		work, stop := context.WithCancel(t.Context())
		defer stop()
		var mu sync.Mutex
		running := 0
		time.AfterFunc(10*time.Second, stop)
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			mu.Lock()
			running++
			mu.Unlock()
			return async.Sleep(ctx, time.Hour)
		}}, taskqueue.Queues(map[string]int{"a": 1, "b": 3}), taskqueue.Concurrency(4)))
		assert.Equal(t, 4, running)
	})
}
