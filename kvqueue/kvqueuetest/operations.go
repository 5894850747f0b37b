package kvqueuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// operationTests are those of what operators do with queues.
var operationTests = []test{
	{"Queues finds the names of all queues", queues},
	{"Purge deletes what is ready and leaves what is claimed", purges},
	{"Discard and RequeueAll are about the letters of a filter", discards},
	{"the age is that of the first item", ages},
}

func queues(f *fixture) {
	names := []string{"a", "a/", "a%2F", "\xff \n", "z", strings.Repeat("/", 300)}
	for _, name := range names {
		f.enqueue(f.open(name), "in it", "in it, too")
	}
	got, err := kvqueue.Queues(f.ctx, f.kv)
	require.NoError(f, err)
	got = slices.DeleteFunc(got, func(name string) bool { return !strings.HasPrefix(name, f.root) })
	for i := range names {
		names[i] = f.root + names[i]
	}
	slices.Sort(names)
	assert.Equal(f, names, got)
}

func purges(f *fixture) {
	q := f.open("q")
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprint(i))
	}
	f.enqueue(q, many...)
	require.NoError(f, q.Do(f.ctx, 1, func(ctx context.Context, _ []kvqueue.Item) error {
		n, err := q.Purge(ctx, kvqueue.Filter{Most: 70})
		assert.NoError(f, err)
		assert.Equal(f, 70, n)
		n, err = q.Purge(ctx, kvqueue.Filter{})
		assert.NoError(f, err)
		assert.Equal(f, 129, n)
		return nil
	}))
	f.empty(q)
	a, err := q.Audit(f.ctx)
	require.NoError(f, err)
	assert.Equal(f, kvqueue.Length{}, a.Length)
	assert.Empty(f, a.Faults)
}

func discards(f *fixture) {
	q := f.open("q", kvqueue.MaxAttempts(1))
	f.enqueue(q, "paper 1", "fire 1", "paper 2", "fire 2")
	for range 4 {
		_ = q.Do(f.ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
			return errors.New("out of " + string(items[0].Value))
		})
	}
	n, err := q.RequeueAll(f.ctx, kvqueue.Filter{Why: "fire"})
	require.NoError(f, err)
	assert.Equal(f, 2, n)
	assert.Equal(f, []string{"fire 1", "fire 2"}, f.takes(q, 10))
	n, err = q.DiscardAll(f.ctx, kvqueue.Filter{Most: 1})
	require.NoError(f, err)
	assert.Equal(f, 1, n)
	letters, err := q.Dead(f.ctx, kvqueue.Key{}, 10)
	require.NoError(f, err)
	require.Len(f, letters, 1)
	assert.Equal(f, "paper 2", string(letters[0].Value))
	n, err = q.Discard(f.ctx, letters[0].Key)
	require.NoError(f, err)
	assert.Equal(f, 1, n)
	f.empty(q)
}

func ages(f *fixture) {
	q := f.open("q")
	age, err := q.Age(f.ctx)
	require.NoError(f, err)
	assert.Zero(f, age)
	f.enqueue(q, "a")
	items, err := q.Peek(f.ctx, 1)
	require.NoError(f, err)
	require.Len(f, items, 1)
	assert.False(f, items[0].Added.IsZero())
	_, err = q.Age(f.ctx)
	require.NoError(f, err)
}
