package redisstore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/redisstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// The first task that waits for others makes a store one that programs of before refuse.
func TestTasksThatWaitRaiseTheFormat(t *testing.T) {
	client := server(t)
	ctx := context.Background()
	s, err := redisstore.New(ctx, client)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	add := func(task taskqueue.Task) {
		task.Type = "t"
		_, err := s.Enqueue(ctx, "q", []taskqueue.Task{task})
		require.NoError(t, err)
	}
	add(taskqueue.Task{ID: "a"})
	assert.Equal(t, "1", client.Get(ctx, "tq:format").Val())
	add(taskqueue.Task{ID: "b", After: []string{"a"}})
	assert.Equal(t, "2", client.Get(ctx, "tq:format").Val())
}

// Edges are planted and taken away; the audit sees that somebody was told nothing.
func TestChildrenThatWereToldNothingAreFound(t *testing.T) {
	for says, plant := range map[string]func(ctx context.Context, c *redis.Client) error{
		"and was not told": func(ctx context.Context, c *redis.Client) error { // the parent has no flag: it ends as if nobody waited
			happened, err := c.HGet(ctx, "tq:{q}:s", "a").Bytes()
			if err != nil {
				return err
			}
			happened[1] &^= 128
			return c.HSet(ctx, "tq:{q}:s", "a", happened).Err()
		},
		"waits for nothing":        func(ctx context.Context, c *redis.Client) error { return c.Del(ctx, "tq:{q}:edges").Err() },
		"does not wait":            func(ctx context.Context, c *redis.Client) error { return c.HDel(ctx, "tq:{q}:s", "b").Err() },
		"waited for by task \"x\"": func(ctx context.Context, c *redis.Client) error { return c.HSet(ctx, "tq:{q}:left", "x", 1).Err() },
	} {
		t.Run(says, func(t *testing.T) {
			client := server(t)
			ctx := t.Context()
			s, err := redisstore.New(ctx, client)
			require.NoError(t, err)
			defer func() { assert.NoError(t, s.Close()) }()
			_, err = s.Enqueue(ctx, "q", []taskqueue.Task{{ID: "a", Type: "t"}, {ID: "b", Type: "t", After: []string{"a"}}})
			require.NoError(t, err)
			faults, err := s.Audit(ctx, "q")
			require.NoError(t, err)
			require.Empty(t, faults)
			require.NoError(t, plant(ctx, client))
			if says == "and was not told" {
				_, err = s.Act(ctx, "q", "a", store.ActCancel)
				require.NoError(t, err)
			}
			faults, err = s.Audit(ctx, "q")
			require.NoError(t, err)
			assert.Contains(t, strings.Join(faults, "; "), says)
		})
	}
}
