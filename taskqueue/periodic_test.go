package taskqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
)

func TestThreeProcessesAddOneTaskATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		var ran []time.Duration
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Second)
		defer cancel()
		err := async.Scope(context.WithoutCancel(ctx), func(live context.Context) error {
			for range 3 {
				q, err := taskqueue.New(s)
				require.NoError(t, err)
				require.NoError(t, q.Every("report", "@every 60s", taskqueue.Task{Type: "t"}))
				async.Go(live, func(context.Context) error {
					return q.Work(ctx, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error {
						ran = append(ran, time.Since(begin))
						return nil
					}})
				})
			}
			return nil
		})
		require.NoError(t, err)
		require.Len(t, ran, 5)
		for i, at := range ran {
			assert.GreaterOrEqual(t, at, time.Duration(i+1)*time.Minute)
			assert.Less(t, at, time.Duration(i+1)*time.Minute+10*time.Millisecond)
		}
	})
}

func TestMissedTicksAreSkippedOrCaughtUpOnce(t *testing.T) {
	for name, opts := range map[string][]taskqueue.EveryOption{"skipped": nil, "caught up": {taskqueue.CatchUp()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				runs := 0
				work := func(d time.Duration) {
					q, err := taskqueue.New(s)
					require.NoError(t, err)
					require.NoError(t, q.Every("report", "*/10 * * * *", taskqueue.Task{Type: "t"}, opts...))
					ctx, cancel := context.WithTimeout(t.Context(), d)
					defer cancel()
					require.NoError(t, q.Work(ctx, taskqueue.Handlers{"t": func(context.Context, *taskqueue.Claim) error { runs++; return nil }}))
				}
				work(15 * time.Minute)
				assert.Equal(t, 1, runs)
				time.Sleep(10 * time.Hour)
				runs = 0
				work(3 * time.Minute)
				assert.Equal(t, len(opts), runs)
			})
		})
	}
}

func TestABadScheduleSaysWhatToDo(t *testing.T) {
	q, err := taskqueue.New(memstore.New())
	require.NoError(t, err)
	for _, text := range []string{"", "every day", "* * * *", "61 * * * *", "@every 1ms", "@every x"} {
		err := q.Every("report", text, taskqueue.Task{Type: "t"})
		var wrong *taskqueue.InvalidError
		require.ErrorAs(t, err, &wrong, text)
		assert.Contains(t, err.Error(), "crontab")
	}
	require.NoError(t, q.Every("report", "@hourly", taskqueue.Task{Type: "t"}))
	assert.ErrorContains(t, q.Every("report", "@daily", taskqueue.Task{Type: "t"}), "in use")
}
