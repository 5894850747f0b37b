package jobqueue_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// A fault of users' functions while jobs are settled is told by the scope,
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

// A panic is Consume's, once its batch is back and the other workers are
// joined; so is Goexit.
func TestConsumeHandsOnPanics(t *testing.T) {
	for name, f := range map[string]func(){"panic": func() { panic(errBoom) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			q := queueOf(1, 2)
			var other sync.WaitGroup
			other.Add(1)
			joined := false
			var err error
			raised := func() (p any) {
				defer func() { p = recover() }()
				err = q.Consume(t.Context(), 2, 1, func(ctx context.Context, jobs []int) error {
					if jobs[0] == 1 {
						other.Wait()
						f()
					}
					other.Done()
					<-ctx.Done()
					joined = true
					return nil
				})
				return nil
			}()
			if name == "panic" {
				assert.ErrorIs(t, raised.(error), errBoom)
			} else {
				assert.ErrorIs(t, err, async.ErrGoexit)
			}
			assert.True(t, joined)
			assert.Equal(t, []int{1, 2}, q.Queued())
		})
	}
}

// A panic of an observer or of what buries the dead is not swallowed with the
// errors of batches.
func TestConsumeHandsOnPanicsOfOptions(t *testing.T) {
	q := jobqueue.New[int](jobqueue.MaxAttempts(1, func(int, error) { panic(errBoom) }))
	q.Add(1)
	err := q.Consume(t.Context(), 1, 1, func(context.Context, []int) error { return errors.New("failed") })
	var p *async.PanicError
	require.ErrorAs(t, err, &p)
	assert.Equal(t, errBoom, p.Value)
}

// TestAPanicThatDoesNotCountForItsScopeIsAFailedAttempt: a job that makes its task
// panic each time is buried, though the scope carries on.
func TestAPanicThatDoesNotCountForItsScopeIsAFailedAttempt(t *testing.T) {
	var dead []int
	q := jobqueue.New[int](jobqueue.MaxAttempts(2, func(job int, _ error) { dead = append(dead, job) }))
	q.Add(1)
	for range 2 {
		require.Empty(t, dead)
		require.NoError(t, async.Scope(t.Context(), func(ctx context.Context) error {
			async.Go(ctx, func(ctx context.Context) error {
				_, err := q.Take(ctx, 1)
				require.NoError(t, err)
				panic("planted")
			})
			return nil
		}, async.OnPanic(func(*async.PanicError) error { return nil })))
	}
	require.Equal(t, []int{1}, dead)
}

// The function of MaxAttempts goes wrong after a job of which a task has panicked: Consume tells of both, or of that function.
func TestConsumeTellsWhatGoesWrongInTheFunctionOfMaxAttempts(t *testing.T) {
	for name, bad := range map[string]func(){"panic": func() { panic("dead letters are full") }, "Goexit": runtime.Goexit} {
		for what, f := range map[string]func(ctx context.Context, jobs []int) error{
			"an error": func(context.Context, []int) error { return errors.New("failed") },
			"a panic of a task": func(ctx context.Context, _ []int) error {
				_, err := async.Start(ctx, func(context.Context) error { panic("task") }).Join(ctx)
				return err
			},
		} {
			t.Run(name+" after "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := jobqueue.New[int](jobqueue.MaxAttempts(1, func(int, error) { bad() }))
					q.Add(1)
					time.AfterFunc(time.Second, q.Close) // else Consume goes on
					var err error
					raised := func() (v any) {
						defer func() { v = recover() }()
						err = q.Consume(t.Context(), 1, 1, f)
						return nil
					}()
					assert.True(t, err != nil || raised != nil, "nobody is told of the "+name)
				})
			})
		}
	}
}
