package limit

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

func set(t *testing.T, limits ...taskqueue.Limit) *Set {
	text := ""
	for _, l := range limits {
		var err error
		text, err = Changed(text, l)
		require.NoError(t, err)
	}
	s, err := Parse(text)
	require.NoError(t, err)
	return s
}

func TestOf(t *testing.T) {
	s := set(t, taskqueue.Limit{Key: "a*", Concurrency: 1}, taskqueue.Limit{Key: "abc", Concurrency: 3}, taskqueue.Limit{Key: "ab*", Concurrency: 2}, taskqueue.Limit{Type: "t", Concurrency: 9})
	for _, c := range []struct {
		key, kind, group string
		want             int // 0: no limit
	}{
		{"a", "t", "ka", 1}, {"ab", "t", "kab", 2}, {"abc", "t", "kabc", 3}, {"abcd", "t", "kabcd", 2},
		{"b", "t", "tt", 9}, {"", "t", "tt", 9}, {"b", "u", "tu", 0}, {"", "u", "tu", 0},
	} {
		group, l := s.Of(c.key, c.kind)
		assert.Equal(t, c.group, group)
		assert.Equal(t, l, s.Group(group))
		if c.want == 0 {
			assert.Nil(t, l, c)
		} else if assert.NotNil(t, l, c) {
			assert.Equal(t, c.want, l.Concurrency, c)
		}
	}
	s = set(t, taskqueue.Limit{Key: "*", Concurrency: 1})
	_, l := s.Of("", "t")
	assert.Nil(t, l, "a task without a key is under no limit of keys")
}

func TestChanged(t *testing.T) {
	one := taskqueue.Limit{Key: "k", Concurrency: 1}
	text, err := Changed("", one)
	require.NoError(t, err)
	same, err := Changed(text, one)
	require.NoError(t, err)
	assert.Equal(t, text, same)
	same, err = Changed(text, taskqueue.Limit{Key: "none"})
	require.NoError(t, err)
	assert.Equal(t, text, same)
	before, err := Parse(text)
	require.NoError(t, err)
	text, err = Changed(text, taskqueue.Limit{Key: "k"})
	require.NoError(t, err)
	after, err := Parse(text)
	require.NoError(t, err)
	assert.Empty(t, after.Limits)
	assert.Greater(t, after.Prefix(), before.Prefix())
	for i := range taskqueue.MaxLimits {
		text, err = Changed(text, taskqueue.Limit{Key: fmt.Sprint(i), Concurrency: 1})
		require.NoError(t, err)
	}
	_, err = Changed(text, one)
	assert.ErrorAs(t, err, new(*taskqueue.InvalidError))
	_, err = Changed(text, taskqueue.Limit{Key: "7", Concurrency: 2})
	assert.NoError(t, err)
	_, err = Parse("{")
	assert.Error(t, err)
}

func TestRoom(t *testing.T) {
	n, next := Room(&taskqueue.Limit{Concurrency: 3}, 1, 0, 100)
	assert.Equal(t, 2, n)
	assert.Zero(t, next)
	n, _ = Room(&taskqueue.Limit{Concurrency: 3}, 5, 0, 100)
	assert.Zero(t, n)
	for _, rate := range []float64{1, 3, 7.7, 1e-7, 1e5} {
		l := &taskqueue.Limit{Rate: rate, Burst: 3}
		const now = 1.7e15
		fullAt := 0.0
		for want := 3; want > 0; want-- {
			n, _ := Room(l, 0, fullAt, now)
			assert.Equal(t, want, n, rate)
			fullAt = Spent(l, fullAt, now)
		}
		n, next := Room(l, 0, fullAt, now)
		assert.Zero(t, n, rate)
		assert.InDelta(t, 1e6/rate, next-now, 3, rate)
		n, _ = Room(l, 0, fullAt, next)
		assert.Equal(t, 1, n, "%v: at the time that was said", rate)
		n, _ = Room(l, 0, fullAt, now+1e7/rate)
		assert.Equal(t, 3, n, rate)
		_, next = Room(l, 0, math.MaxInt64, now)
		assert.InDelta(t, 1e6/rate, next-now, 3, "%v: a time of another clock", rate)
	}
}
