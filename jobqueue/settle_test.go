package jobqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// Some jobs may be settled before the scope ends; the end decides about the
// rest.
func TestAckAndNackSettleEarly(t *testing.T) {
	q := queueOf(1, 2, 3, 4)
	err := q.Do(t.Context(), 3, func(ctx context.Context, jobs []int) error {
		q.Ack(ctx, 1, 99)
		assert.Equal(t, []int{2, 3}, q.InProgress())
		assert.True(t, q.Add(1), "it is done")
		q.Nack(ctx, errBoom, 3)
		assert.Equal(t, []int{3, 4, 1}, q.Queued())
		return errBoom
	})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, []int{2, 3, 4, 1}, q.Queued())
}

// To name a job twice is to name it once.
func TestAJobNamedTwiceIsSettledOnce(t *testing.T) {
	for name, q := range map[string]*jobqueue.Queue[int, int]{
		"plain":   jobqueue.New[int](),
		"delayed": jobqueue.New[int](jobqueue.RetryDelay(async.Every(time.Hour))),
	} {
		t.Run(name, func(t *testing.T) {
			q.AddAll(1, 2, 3)
			require.NoError(t, q.Do(t.Context(), 3, func(ctx context.Context, _ []int) error {
				q.Ack(ctx, 1, 1)
				q.Nack(ctx, errBoom, 2, 2)
				q.Nack(ctx, nil, 3, 3)
				assert.Empty(t, q.InProgress())
				return nil
			}))
			assert.ElementsMatch(t, []int{2, 3}, q.Queued())
			s := q.Stats()
			assert.Equal(t, [3]uint64{1, 1, 2}, [3]uint64{s.Done, s.Failed, s.Returned})
			q.Close()
		})
	}
}

// What a consumer took, tasks that it has started may settle. A stranger may
// not, nor may the scope around.
func TestHoldersAreLookedForOutwards(t *testing.T) {
	q := queueOf(1, 2, 3)
	err := async.Scope(t.Context(), func(outer context.Context) error {
		return async.Scope(outer, func(ctx context.Context) error {
			jobs, err := q.Take(ctx, 3)
			require.NoError(t, err)

			q.Ack(outer, jobs...)
			q.Ack(context.Background(), jobs...)
			q.Nack(outer, errBoom, jobs...)
			require.NoError(t, async.Scope(outer, func(sibling context.Context) error {
				q.Ack(sibling, jobs...)
				return nil
			}))
			assert.Equal(t, jobs, q.InProgress(), "nobody who may had a say yet")

			for _, job := range jobs {
				async.Go(ctx, func(ctx context.Context) error {
					return async.Scope(context.WithoutCancel(ctx), func(ctx context.Context) error {
						q.Ack(ctx, job)
						return nil
					})
				})
			}
			async.OnExit(ctx, func(ctx context.Context, _ error) error {
				assert.Empty(t, q.InProgress())
				return errBoom
			})
			return nil
		})
	})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, uint64(3), q.Stats().Done)
}

// Each scope settles what it took itself: the inner one's success is not the
// outer one's, nor the other way round.
func TestEachScopeSettlesItsOwn(t *testing.T) {
	q := queueOf(1, 2)
	err := async.Scope(t.Context(), func(ctx context.Context) error {
		_, err := q.Take(ctx, 1)
		require.NoError(t, err)
		require.NoError(t, q.Do(ctx, 1, func(context.Context, []int) error { return nil }))
		return errBoom
	})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, []int{1}, q.Queued())
}

// A job is given up after so many failed runs, and dead is told why.
func TestMaxAttemptsBuries(t *testing.T) {
	var dead []error
	q := jobqueue.New[int](jobqueue.MaxAttempts(3, func(job int, err error) {
		assert.Equal(t, 1, job)
		dead = append(dead, err)
	}))
	q.Add(1)
	for i := range 3 {
		assert.Empty(t, dead)
		_ = q.Do(t.Context(), 1, func(ctx context.Context, _ []int) error {
			assert.Equal(t, i+1, q.Attempt(1))
			if i == 1 {
				q.Nack(ctx, errors.New("nacked"), 1)
				return nil
			}
			return errBoom
		})
	}
	require.Len(t, dead, 1)
	assert.ErrorIs(t, dead[0], errBoom)
	assert.Empty(t, q.Queued())
	s := q.Stats()
	assert.Equal(t, [3]uint64{3, 2, 1}, [3]uint64{s.Failed, s.Returned, s.Dead})
	assert.True(t, q.Add(1), "it is forgotten")
}

// Told to stop is not failed. A limit of its own is. The cases are how a scope
// or task that holds a job comes to its end.
func TestWhoWasToldToStopHasNotFailed(t *testing.T) {
	cause := errors.New("going home")
	take := func(ctx context.Context, q *jobqueue.Queue[int, int]) error {
		if _, err := q.Take(ctx, 1); err != nil {
			return err
		}
		<-ctx.Done()
		return errBoom // whatever it says after it was told to stop
	}
	body := func(q *jobqueue.Queue[int, int]) func(ctx context.Context) error {
		return func(ctx context.Context) error { return take(ctx, q) }
	}
	for name, c := range map[string]struct {
		run    func(ctx context.Context, q *jobqueue.Queue[int, int])
		failed bool
	}{
		"ctx is cancelled": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(1, func() { cancel(cause) })
			_ = async.Scope(ctx, body(q))
		}},
		"ctx has a deadline": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			ctx, cancel := context.WithTimeout(ctx, 1)
			defer cancel()
			_ = async.Scope(ctx, body(q))
		}},
		"ctx has a deadline that looks like ours": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			ctx, cancel := context.WithTimeoutCause(ctx, 1, &async.TimeoutError{})
			defer cancel()
			_ = async.Scope(ctx, body(q))
		}},
		"the scope around has a time limit": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_ = async.Scope(ctx, func(ctx context.Context) error { return async.Scope(ctx, body(q)) }, async.Timeout(1))
		}},
		"a sibling fails": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, body(q))
				async.Go(ctx, func(ctx context.Context) error { _ = async.Sleep(ctx, time.Second); return cause })
				return nil
			})
		}},
		"its future is cancelled": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			f := async.Start(ctx, body(q))
			synctest.Wait()
			f.Cancel(cause)
			_, _ = f.Wait(ctx)
		}},
		"it lost a race": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			lose := func(ctx context.Context) (int, error) { return 0, take(ctx, q) }
			_, _ = async.Race(ctx, lose, func(ctx context.Context) (int, error) { return 1, async.Sleep(ctx, time.Second) }).Wait(ctx)
		}},
		"a daemon is dismissed": {run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(ctx context.Context) error { _ = take(ctx, q); return nil }, async.Daemon())
				return async.Sleep(ctx, time.Second)
			})
		}},
		"it has a time limit": {failed: true, run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_ = async.Scope(ctx, body(q), async.Timeout(1))
		}},
		"its task has a time limit": {failed: true, run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_, _ = async.Start(ctx, body(q), async.Timeout(1)).Wait(ctx)
		}},
		"its owner waits no longer": {failed: true, run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_, _ = async.Start(ctx, body(q)).Await(ctx, 1)
		}},
		"its heart stops": {failed: true, run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_, _ = async.Start(ctx, body(q), async.Heartbeat(1)).Wait(ctx)
		}},
		"a task of it fails": {failed: true, run: func(ctx context.Context, q *jobqueue.Queue[int, int]) {
			_ = async.Scope(ctx, func(ctx context.Context) error {
				async.Go(ctx, func(context.Context) error { return errBoom })
				return take(ctx, q)
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kinds []jobqueue.EventKind
				q := jobqueue.New[int](jobqueue.Observe(func(e jobqueue.Event[int]) { kinds = append(kinds, e.Kind) }))
				q.Add(1)
				_ = async.Scope(t.Context(), func(ctx context.Context) error { c.run(ctx, q); return nil })
				assert.Equal(t, []int{1}, q.Queued())
				want := jobqueue.Stopped
				if c.failed {
					want = jobqueue.Failed
				}
				assert.Equal(t, []jobqueue.EventKind{jobqueue.Added, jobqueue.Taken, want}, kinds)
				assert.Equal(t, uint64(1), q.Stats().Returned)
			})
		})
	}
}

// Going home buries nothing: neither are attempts used up nor is there a delay.
func TestShuttingDownBuriesNoJobs(t *testing.T) {
	q := jobqueue.New[int](jobqueue.RetryDelay(async.Every(time.Hour)),
		jobqueue.MaxAttempts(1, func(int, error) { t.Error("buried") }))
	q.AddAll(1, 2)
	ctx, cancel := context.WithCancel(t.Context())
	err := q.Consume(ctx, 2, 1, func(ctx context.Context, _ []int) error { cancel(); <-ctx.Done(); return errBoom })
	assert.ErrorIs(t, err, context.Canceled)
	require.NoError(t, q.Do(t.Context(), 2, func(ctx context.Context, jobs []int) error {
		assert.Equal(t, []int{1, 2}, jobs)
		q.Nack(ctx, nil, jobs...)
		return nil
	}))
	assert.Equal(t, []int{1, 2}, q.Queued(), "with no error a Nack is no failure")
}

// The delay is asked for with the number of failed runs, and the job is in its
// old place after it.
func TestRetryDelayKeepsThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []int
		q := jobqueue.New[int](jobqueue.RetryDelay(func(failed int) time.Duration {
			asked = append(asked, failed)
			return time.Duration(failed) * time.Second
		}))
		q.AddAll(1, 2)
		for i := range 2 {
			_ = q.Do(t.Context(), 1, func(context.Context, []int) error { return errBoom })
			assert.Equal(t, []int{2, 1}, q.Queued(), "the delayed ones are last")
			time.Sleep(time.Duration(i+1) * time.Second)
			synctest.Wait()
			assert.Equal(t, []int{1, 2}, q.Queued())
		}
		assert.Equal(t, []int{1, 2}, asked)
	})
}

// What is dead is not asked for how long it waits.
func TestRetryDelayIsNotAskedForTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		q := jobqueue.New[int](jobqueue.MaxAttempts[int](2, nil),
			jobqueue.RetryDelay(func(int) time.Duration { asked++; return time.Second }))
		q.Add(1)
		for range 2 {
			_ = q.Do(t.Context(), 1, func(context.Context, []int) error { return errBoom })
		}
		assert.Equal(t, 1, asked)
		assert.Equal(t, uint64(1), q.Stats().Dead)
	})
}

// What users' functions do wrong while jobs are settled is told by the scope,
// and no job is lost for it.
func TestPanicsWhileSettling(t *testing.T) {
	shaky := jobqueue.RetryDelay(func(failed int) time.Duration { panic(errBoom) })
	buries := jobqueue.MaxAttempts(1, func(int, error) { panic(errBoom) })
	observed := jobqueue.Observe(func(e jobqueue.Event[int]) {
		if e.Kind > jobqueue.Taken {
			panic(errBoom)
		}
	})
	for name, c := range map[string]struct {
		opt  jobqueue.Option
		left []int
	}{
		"delay": {shaky, []int{1, 2, 3}}, "dead": {buries, []int{3}}, "observer": {observed, []int{1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			q := jobqueue.New[int](c.opt)
			q.AddAll(1, 2, 3)
			failed := errors.New("failed")
			err := q.Do(t.Context(), 2, func(context.Context, []int) error { return failed })
			assert.ErrorIs(t, err, failed)
			var p *async.PanicError
			require.ErrorAs(t, err, &p)
			assert.Equal(t, errBoom, p.Value)
			assert.Equal(t, c.left, q.Queued())

			// By hand it is the caller's.
			err = q.Do(t.Context(), 1, func(ctx context.Context, jobs []int) error {
				assert.PanicsWithValue(t, errBoom, func() { q.Nack(ctx, failed, jobs...) })
				assert.Empty(t, q.InProgress())
				return nil
			})
			assert.NoError(t, err)
		})
	}
}

// A job whose taking an observer has spoilt by a panic was given to nobody.
func TestAPanicOfTheObserverInTakeLosesNothing(t *testing.T) {
	q := jobqueue.New[int](jobqueue.Observe(func(e jobqueue.Event[int]) {
		if e.Kind == jobqueue.Taken {
			panic(errBoom)
		}
	}))
	q.Add(1)
	require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
		assert.PanicsWithValue(t, errBoom, func() { _, _ = q.Take(ctx, 1) })
		return nil
	}))
	assert.Equal(t, []int{1}, q.Queued())
}

// Every dead job is told of, although the function panics each time.
func TestEveryDeadJobIsTold(t *testing.T) {
	var told []int
	q := jobqueue.New[int](jobqueue.MaxAttempts(1, func(job int, _ error) { told = append(told, job); panic(errBoom) }))
	q.AddAll(1, 2, 3)
	err := q.Do(t.Context(), 3, func(context.Context, []int) error { return errors.New("failed") })
	assert.ErrorAs(t, err, new(*async.PanicError))
	assert.Equal(t, []int{1, 2, 3}, told)
}
