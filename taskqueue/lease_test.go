package taskqueue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
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

// While the handler of a lost run goes on, the same worker runs its successor.
func TestAHandlerThatDoesNotCareKeepsItsPlaceAndLeavesItsSuccessorAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &cutOff{Store: memstore.New(), cut: true}
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		id := add(t, q, taskqueue.Task{Type: "t", Retention: 24 * time.Hour})
		other := add(t, q, taskqueue.Task{Type: "other", Delay: 2 * time.Minute, Retention: 24 * time.Hour})
		work, stop := context.WithCancel(t.Context())
		defer stop()
		var mu sync.Mutex
		var running, most int
		var runs atomic.Int64
		add := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		err = q.Work(work, taskqueue.Handlers{
			"t": func(ctx context.Context, c *taskqueue.Claim) error {
				add(1)
				defer add(-1)
				if runs.Add(1) == 1 {
					<-ctx.Done()
					s.off(false)
					time.Sleep(5 * time.Minute) // it does not care
					c.SetResult([]byte("of the lost run"))
					return errors.New("of the lost run")
				}
				c.SetResult([]byte("of the successor"))
				if err := async.Sleep(ctx, 10*time.Minute); err != nil { // longer than the first lasts, and than a lease
					return err
				}
				stop()
				return nil
			},
			"other": func(context.Context, *taskqueue.Claim) error {
				add(1)
				defer add(-1)
				return nil
			},
		}, taskqueue.Concurrency(2))
		require.NoError(t, err)
		assert.EqualValues(t, 2, runs.Load(), "the successor keeps its lease, also after the lost run has returned")
		assert.Equal(t, 2, most, "the place of the lost run stays taken")
		i, err := q.Get(context.Background(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateDone, i.State)
		assert.Equal(t, "of the successor", string(i.Result))
		assert.Zero(t, i.Failures)
		i, err = q.Get(context.Background(), other)
		require.NoError(t, err)
		assert.Greater(t, i.StartedAt.Sub(i.DueAt), 3*time.Minute, "it waits until the lost run has returned")
	})
}

// A lost run that does not return does not keep its task from others.
func TestTheLeaseOfALostRunIsNotExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newOutage(t)
		add(t, q, taskqueue.Task{Type: "t"})
		work, stop := context.WithCancel(t.Context())
		defer stop()
		begin := time.Now()
		time.AfterFunc(time.Second, func() { s.set(true, false) })
		time.AfterFunc(40*time.Second, func() { s.set(false, false) })
		var second time.Duration
		var runs atomic.Int64
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			if runs.Add(1) > 1 {
				second = time.Since(begin)
				stop()
				return nil
			}
			<-ctx.Done()
			time.Sleep(time.Hour)
			return nil
		}}, taskqueue.Concurrency(2), taskqueue.Lease(30*time.Second)))
		assert.Less(t, second, 75*time.Second, "a lease after the outage")
	})
}

func TestAWorkerWithoutASpareMomentLeavesNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		add(t, q, taskqueue.Task{ID: "crashed", Type: "t"})
		got, err := s.Claim(t.Context(), store.ClaimRequest{Queue: taskqueue.DefaultQueue, Worker: "dies", Nonce: "1", Max: 1, Lease: 2 * time.Second})
		require.NoError(t, err)
		require.Len(t, got.Tasks, 1)
		begin := time.Now()
		var again time.Duration
		work, stop := context.WithCancel(t.Context())
		defer stop()
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
			again = time.Since(begin)
			stop()
			return nil
		}}, taskqueue.Lease(2*time.Second)))
		assert.LessOrEqual(t, again, 2*time.Second+100*time.Millisecond, "T6")
	})
}

// A process that has died and is started again in its container: the same host, the
// same number. The task of its predecessor is not given to it as the answer to its first
// claim: that the predecessor has died would be counted never.
func TestAWorkerOfTheSameNameDoesNotGetWhatItsPredecessorHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "t", Retention: time.Hour})
		first := &nonces{Store: s}
		worker, err := taskqueue.New(first)
		require.NoError(t, err)
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Second, cancel)
			require.NoError(t, worker.In("empty").Work(ctx, taskqueue.Handlers{"t": nothing}, taskqueue.WorkerName("pod:1:1")))
		}
		for n := range first.seen {
			assert.Equal(t, 1, first.seen[n], "nonce %s", n)
		}
		// The predecessor claims with the first nonce that it has, and dies.
		_, err = s.Claim(t.Context(), store.ClaimRequest{Queue: q.Name(), Worker: "pod:1:1", Nonce: "1", Max: 1, Lease: time.Minute})
		require.NoError(t, err)
		begin := time.Now()
		work, stop := context.WithCancel(t.Context())
		defer stop()
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
			assert.GreaterOrEqual(t, time.Since(begin), time.Minute)
			assert.Equal(t, 1, c.Crashes)
			stop()
			return nil
		}}, taskqueue.WorkerName("pod:1:1")))
		i, err := q.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, taskqueue.StateDone, i.State)
	})
}

// nonces counts the nonces of claims.
type nonces struct {
	taskqueue.Store
	mu   sync.Mutex
	seen map[string]int
}

func (s *nonces) Claim(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error) {
	s.mu.Lock()
	if s.seen == nil {
		s.seen = map[string]int{}
	}
	s.seen[r.Nonce]++
	s.mu.Unlock()
	return s.Store.Claim(ctx, r)
}

const asSuspended = "TASKQUEUE_TEST_SUSPENDED"

// The other process of TestAfterASuspendTheHandlerLearnsItFirst.
func suspended() {
	runtime.GOMAXPROCS(1) // nothing else finds out before the handler goes on
	q, err := taskqueue.New(memstore.New())
	if err == nil {
		_, err = q.Enqueue(context.Background(), taskqueue.Task{Type: "t"})
	}
	work, stop := context.WithCancel(context.Background())
	defer stop()
	if err == nil {
		err = q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, c *taskqueue.Claim) error {
			defer stop()
			fmt.Println("runs")
			for {
				over := time.Now().After(c.Deadline())
				err := ctx.Err()
				switch {
				case err != nil:
					fmt.Println("lost:", errors.Is(context.Cause(ctx), taskqueue.ErrLeaseLost))
					return err
				case over:
					fmt.Println("it goes on after its lease")
					return nil
				}
			}
		}}, taskqueue.Lease(time.Second))
	}
	if err != nil {
		fmt.Println(err)
	}
}

// A claim whose answer comes after its lease is over.
type slowClaims struct {
	taskqueue.Store
	mu sync.Mutex
	n  int
}

func (s *slowClaims) Claim(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error) {
	got, err := s.Store.Claim(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; s.n == 1 {
		time.Sleep(r.Lease + time.Second)
	}
	return got, err
}

func TestWhatIsClaimedTooLateDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowClaims{Store: memstore.New()}
		q, err := taskqueue.New(s)
		require.NoError(t, err)
		add(t, q, taskqueue.Task{Type: "t"})
		work, stop := context.WithCancel(t.Context())
		defer stop()
		runs := 0
		require.NoError(t, q.Work(work, taskqueue.Handlers{"t": func(ctx context.Context, _ *taskqueue.Claim) error {
			runs++
			assert.NoError(t, ctx.Err())
			stop()
			return nil
		}}))
		assert.Equal(t, 1, runs)
	})
}
