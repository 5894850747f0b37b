package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/jobqueue"
)

// A queueTest is a queue in a bubble, whose work is told of.
type queueTest struct {
	*queue
	stop   context.CancelFunc
	ended  chan error
	mu     sync.Mutex
	starts []time.Duration // when each attempt was begun
	gaveUp []string
}

// inBubble runs a test of a queue with one worker. Work on a name is done when work
// returns.
func inBubble(t *testing.T, work func(ctx context.Context, name string) error, test func(t *testing.T, q *queueTest)) {
	synctest.Test(t, func(t *testing.T) {
		begin, q := time.Now(), &queueTest{ended: make(chan error, 1)}
		q.queue = newQueue(func(ctx context.Context, name string) error {
			q.mu.Lock() // the attempt before may hang
			q.starts = append(q.starts, time.Since(begin).Round(time.Millisecond))
			q.mu.Unlock()
			return work(ctx, name)
		}, func(jobqueue.Event[string]) {}, func(name string, _ error) { q.gaveUp = append(q.gaveUp, name) })
		ctx, stop := context.WithCancel(t.Context())
		q.stop = stop
		go func() { q.ended <- q.run(ctx, 1) }()
		test(t, q)
		stop()
		<-q.ended
	})
}

// A hundred changes while a name is queued are one job, and so are a hundred while it
// is worked on: one more.
func TestManyChangesAreFewJobs(t *testing.T) {
	inBubble(t, func(context.Context, string) error { time.Sleep(time.Second); return nil }, func(t *testing.T, q *queueTest) {
		add := func() {
			for range 100 {
				q.Add("a")
			}
		}
		add()
		synctest.Wait() // it is worked on
		add()
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, time.Second}, q.starts)
	})
}

// A job that fails is tried again, later each time, and given up; a panic and a hang are such
// failures, and others have their turn meanwhile.
func TestWhatFailsIsTriedAgainAndGivenUp(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for name, test := range map[string]struct {
		lasts time.Duration // each attempt
		work  func(context.Context) error
	}{
		"an error":                 {0, func(context.Context) error { return errors.New("broken") }},
		"a panic":                  {0, func(context.Context) error { panic("broken") }},
		"a hang":                   {time.Minute, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		"a hang that nothing ends": {time.Minute + 5*time.Second, func(context.Context) error { time.Sleep(24 * time.Hour); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			var others atomic.Int64
			inBubble(t, func(ctx context.Context, name string) error {
				if name == "other" {
					others.Add(1)
					return nil
				}
				return test.work(ctx)
			}, func(t *testing.T, q *queueTest) {
				q.Add("a")
				time.Sleep(time.Hour)
				synctest.Wait()
				l := test.lasts
				assert.Equal(t, []time.Duration{0, l + ms(100), 2*l + ms(300), 3*l + ms(700), 4*l + ms(1500)}, q.starts)
				assert.Equal(t, []string{"a"}, q.gaveUp)
				q.Add("other")
				synctest.Wait()
				assert.EqualValues(t, 1, others.Load())
				time.Sleep(24 * time.Hour) // until no hang is left
			})
		})
	}
}

// Nothing is kept of pictures that are done.
func TestPicturesThatAreDoneAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		s := &studio{every: time.Second, workers: 1, gaveUp: map[string]time.Time{}}
		s.size = 10
		require.NoError(t, os.WriteFile(filepath.Join(folder, "good.png"), drawing(t, 10, 10), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "broken.png"), nil, 0o600))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.run(ctx, folder) }()
		kept := func() [2]int { // after a minute
			time.Sleep(time.Minute)
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			return [2]int{len(s.found), len(s.gaveUp)}
		}
		assert.Equal(t, [2]int{1, 1}, kept())
		require.NoError(t, os.Remove(filepath.Join(folder, "broken.png")))
		assert.Equal(t, [2]int{0, 0}, kept())
		stop()
		<-ended
	})
}

// A stop is no failure: what is worked on goes back to its place, and nothing is given
// up.
func TestAStopLosesNoJob(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }, func(t *testing.T, q *queueTest) {
		q.AddAll("a", "b")
		synctest.Wait()
		q.stop()
		err := <-q.ended
		q.ended <- err
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, []string{"a", "b"}, q.Queued())
		assert.Empty(t, q.gaveUp)
	})
}
