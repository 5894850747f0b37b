package redisstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
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

// A claim that the rate of the queue keeps is not told to come again at once for what a limit of a key has kept.
func TestTheRateOfAQueueAndALimitOfAKeyAreNoHotLoop(t *testing.T) {
	client := server(t)
	s := open(t, client)
	require.NoError(t, s.SetLimit(ctx, "q", taskqueue.Limit{Key: "k", Concurrency: 1}))
	for _, id := range []string{"a", "b", "c", "d"} {
		one := task(id)
		one.LimitKey = "k"
		enqueue(t, s, one)
	}
	runs := claim(t, s, 10, time.Hour) // and parks the others
	require.Len(t, runs, 1)
	configure(t, s, taskqueue.Settings{Rate: 0.001, Burst: 1})
	enqueue(t, s, task("free"))
	require.Len(t, claim(t, s, 1, time.Hour), 1) // the rate is used up
	settle(t, s, runs[0])
	for range 3 {
		got, err := s.Claim(ctx, store.ClaimRequest{Queue: "q", Worker: "w", Max: 10, Lease: time.Hour})
		require.NoError(t, err)
		assert.Empty(t, got.Tasks)
		assert.True(t, got.NextDue.After(got.Now.Add(time.Minute)), got.NextDue)
	}
	st, err := s.Stats(ctx, "q")
	require.NoError(t, err)
	assert.EqualValues(t, 3, st.Limited, "they stay parked, since none may begin")
	configure(t, s, taskqueue.Settings{})
	assert.Len(t, claim(t, s, 10, time.Hour), 1)
	audited(t, s)
}

// A run whose envelope is lost is counted no more when its lease is over.
func TestALostRunFreesThePlaceOfItsKey(t *testing.T) {
	client := server(t)
	s := open(t, client)
	require.NoError(t, s.SetLimit(ctx, "q", taskqueue.Limit{Key: "k", Concurrency: 1}))
	for _, id := range []string{"lost", "next"} {
		one := task(id)
		one.LimitKey = "k"
		enqueue(t, s, one)
	}
	require.Len(t, claim(t, s, 1, time.Millisecond), 1)
	require.NoError(t, client.HDel(ctx, "tq:{q}:p", "lost").Err())
	require.Eventually(t, func() bool { return len(claim(t, s, 10, time.Minute)) == 1 }, patience, 5*time.Millisecond)
	audited(t, s)
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
