package sums_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue/internal/sums"
)

// notes are those of a store, of one queue.
type notes map[string][]byte

func (n notes) Notes(_ context.Context, _ string, names []string) (map[string][]byte, error) {
	found := map[string][]byte{}
	for _, name := range names {
		if b, is := n[name]; is {
			found[name] = b
		}
	}
	return found, nil
}

func (n notes) ChangeNotes(ctx context.Context, queue string, names []string, f func(map[string][]byte)) error {
	given, err := n.Notes(ctx, queue, names)
	f(given)
	maps.Copy(n, given)
	maps.DeleteFunc(n, func(_ string, b []byte) bool { return b == nil })
	return err
}

var (
	ctx   = context.Background()
	start = time.Date(2026, 11, 27, 12, 0, 30, 0, time.UTC)
)

// add notes a run of a type that was late by a second and took two.
func add(t *testing.T, n notes, kind string, at time.Time) {
	t.Helper()
	s := &sums.Sums{Done: 2, Failed: 1}
	s.Late.Note(time.Second)
	s.Took.Note(2 * time.Second)
	require.NoError(t, sums.Add(ctx, n, "q", at, map[string]*sums.Sums{kind: s}))
}

func last(t *testing.T, n notes, kind string, step sums.Step, spans int, now time.Time) []sums.Sums {
	t.Helper()
	all, err := sums.Last(ctx, n, "q", []string{kind}, step, spans, now)
	require.NoError(t, err)
	require.Len(t, all[kind], spans)
	return all[kind]
}

func TestSumsOfSpans(t *testing.T) {
	n := notes{}
	add(t, n, "mail", start)
	add(t, n, "mail", start.Add(10*time.Second))
	add(t, n, "mail", start.Add(time.Minute))
	got := last(t, n, "mail", sums.Minutes, 3, start.Add(time.Minute))
	assert.Equal(t, []int64{0, 4, 2}, []int64{got[0].Done, got[1].Done, got[2].Done})
	assert.Equal(t, start.Truncate(time.Minute), got[1].At.UTC())
	assert.EqualValues(t, 2, got[1].Failed)
	assert.Equal(t, 4*time.Second, got[1].Took.Sum)
	for _, step := range []sums.Step{sums.TenMinutes, sums.Hours} {
		assert.EqualValues(t, 6, last(t, n, "mail", step, 1, start.Add(time.Minute))[0].Done)
	}
	all, err := sums.Types(ctx, n, "q")
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.EqualValues(t, 6, all["mail"].Done)
}

// A note takes the place of the one of six hours, two days or thirty days ago, and nothing of that is told any more.
func TestSumsHaveAnEnd(t *testing.T) {
	n := notes{}
	for i := range 3000 {
		add(t, n, "mail", start.Add(time.Duration(i)*30*time.Minute))
	}
	assert.LessOrEqual(t, len(n), 360+288+720+2)
	now := start.Add(2999 * 30 * time.Minute)
	for _, step := range sums.Steps {
		for _, s := range last(t, n, "mail", step, step.Kept, now) {
			assert.LessOrEqual(t, s.Done, int64(4), "%v: no sum of a span before is in it", step.Span)
		}
	}
	assert.Zero(t, last(t, n, "mail", sums.Minutes, 1, now.Add(6*time.Hour))[0].Done)
}

func TestAHundredTypesHaveSumsOfTheirOwn(t *testing.T) {
	n := notes{}
	for i := range 105 {
		add(t, n, fmt.Sprint("kind", i), start)
	}
	all, err := sums.Types(ctx, n, "q")
	require.NoError(t, err)
	assert.Len(t, all, sums.MaxTypes+1)
	assert.EqualValues(t, 10, all[sums.Other].Done, "five types together")

	later := start.Add(31 * 24 * time.Hour)
	add(t, n, "kind0", later)
	add(t, n, "new", later)
	all, err = sums.Types(ctx, n, "q")
	require.NoError(t, err)
	assert.Contains(t, all, "new", "one that has not run for thirty days has made room")
	assert.EqualValues(t, 4, all["kind0"].Done)
	assert.LessOrEqual(t, len(all), sums.MaxTypes+1)
}

func TestASpreadTellsHowLongMostHaveLasted(t *testing.T) {
	var s sums.Spread
	assert.Zero(t, s.Mean())
	assert.Zero(t, s.Most(0.99))
	for range 99 {
		s.Note(3 * time.Millisecond)
	}
	s.Note(time.Hour)
	assert.EqualValues(t, 100, s.N())
	assert.Equal(t, 4*time.Millisecond, s.Most(0.99))
	assert.Greater(t, s.Most(1), 17*time.Minute)
	s.Note(-time.Second)
	assert.EqualValues(t, 1, s.By[0], "what is early is not late")
}
