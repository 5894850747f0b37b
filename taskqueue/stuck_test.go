package taskqueue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

func TestARunThatLastsForLongIsToldToBeStuckOnce(t *testing.T) {
	for name, c := range map[string]struct {
		before   int           // runs of two seconds
		lasts    time.Duration // then one
		from, at time.Duration // when it is told; 0: never
	}{
		"the first of its type, an hour":       {0, 90 * time.Minute, time.Hour, time.Hour + 10*time.Second},
		"of a type of which little is known":   {99, 50 * time.Minute, 0, 0},
		"ten times as long as the others":      {100, 50 * time.Minute, 30 * time.Second, time.Minute},
		"longer than the others, but not so":   {100, 12 * time.Second, 0, 0},
		"no longer than most, and long enough": {100, 29 * time.Second, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				defer func() { assert.NoError(t, s.Close()) }()
				var told []taskqueue.Event
				q, err := taskqueue.New(s, taskqueue.Observe(func(e taskqueue.Event) {
					if e.Kind == taskqueue.EventStuck {
						told = append(told, e)
					}
				}))
				require.NoError(t, err)
				for i := range c.before {
					add(t, q, taskqueue.Task{ID: fmt.Sprint(i), Type: "t", Priority: 1})
				}
				add(t, q, taskqueue.Task{ID: "long", Type: "t"})
				require.NoError(t, q.Work(t.Context(), taskqueue.Handlers{"t": func(_ context.Context, k *taskqueue.Claim) error {
					if time.Sleep(2 * time.Second); k.ID == "long" {
						time.Sleep(c.lasts - 2*time.Second)
					}
					return nil
				}}, taskqueue.WorkUntilEmpty(), taskqueue.Concurrency(1)))
				if c.at == 0 {
					assert.Empty(t, told)
					return
				}
				require.Len(t, told, 1)
				assert.Equal(t, "long", told[0].ID)
				assert.Equal(t, "t", told[0].Type)
				assert.Greater(t, told[0].Took, c.from)
				assert.Less(t, told[0].Took, c.at)
			})
		})
	}
}

// The name of the run is the only one in the text of what has gone wrong.
func TestTheErrorOfAStoppedRunNamesNothingOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t)
		id := add(t, q, taskqueue.Task{Type: "mail"})
		work, stop := context.WithCancel(t.Context())
		require.NoError(t, q.Work(work, taskqueue.Handlers{"mail": func(ctx context.Context, _ *taskqueue.Claim) error {
			async.Go(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return fmt.Errorf("twelve rows were not written: %w", ctx.Err())
			}, async.Name("rows"))
			stop()
			<-ctx.Done()
			return ctx.Err()
		}}, taskqueue.ShutdownGrace(time.Second)))
		i, err := q.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Contains(t, i.LastError, "twelve rows")
		assert.Contains(t, i.LastError, "mail "+id)
		assert.NotContains(t, i.LastError, "taskqueue.(")
		assert.NotContains(t, i.LastError, "handle")
	})
}
