package redisstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

// A program that knows nothing of limits would hand out too much: it is refused.
func TestLimitsAreANewerFormat(t *testing.T) {
	for name, use := range map[string]func(s taskqueue.Store) error{
		"SetLimit": func(s taskqueue.Store) error {
			return s.SetLimit(ctx, "q", taskqueue.Limit{Key: "k", Concurrency: 1})
		},
		"Enqueue": func(s taskqueue.Store) error {
			one := task("a")
			one.LimitKey = "k"
			_, err := s.Enqueue(ctx, "q", []taskqueue.Task{one})
			return err
		},
		"Tick": func(s taskqueue.Store) error {
			one := task("a")
			one.LimitKey = "k"
			_, err := s.Tick(ctx, taskqueue.Tick{Queue: "q", Name: "n", Schedule: "@hourly", At: time.Now(), Task: one})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := server(t)
			s := open(t, client)
			enqueue(t, s, task("plain"))
			assert.Equal(t, "1", client.Get(ctx, "tq:format").Val())
			require.NoError(t, use(s))
			assert.Equal(t, "2", client.Get(ctx, "tq:format").Val())
			open(t, client)
		})
	}
}

// Nothing is left of groups that have no tasks, and of rates that are full again.
func TestNothingIsLeftOfLimits(t *testing.T) {
	client := server(t)
	s := open(t, client)
	require.NoError(t, s.SetLimit(ctx, "q", taskqueue.Limit{Key: "*", Concurrency: 1, Rate: 1e6}))
	for _, id := range []string{"a", "b"} {
		one := task(id)
		one.LimitKey = "k"
		enqueue(t, s, one)
	}
	for range 2 {
		runs := claim(t, s, 10, time.Minute)
		require.Len(t, runs, 1)
		settle(t, s, runs[0])
	}
	claim(t, s, 10, time.Minute)
	claim(t, s, 10, time.Minute)
	for _, key := range []string{"limited", "held", "pace", "wakes"} {
		assert.Zero(t, client.Exists(ctx, "tq:{q}:"+key).Val(), key)
	}
	audited(t, s)
}
