package taskqueuetest

import (
	"strconv"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
)

// Notes are changed in one step, whoever else changes them; a store that keeps none is no fault.
func notes(f *fixture) {
	s, is := f.s.(taskqueue.NoteStore)
	if !is {
		f.Skip("it keeps no notes")
	}
	got, err := s.Notes(ctx, queue, []string{"a", "b", "a"})
	require.NoError(f, err)
	assert.Empty(f, got)
	got, err = s.Notes(ctx, queue, nil)
	require.NoError(f, err)
	assert.Empty(f, got)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				assert.NoError(f, s.ChangeNotes(ctx, queue, []string{"a", "gone"}, func(notes map[string][]byte) {
					n, _ := strconv.Atoi(string(notes["a"]))
					notes["a"], notes["b"] = []byte(strconv.Itoa(n+1)), []byte{0, 255}
				}))
			}
		})
	}
	all.Wait()
	require.NoError(f, s.ChangeNotes(ctx, "other", []string{"a"}, func(notes map[string][]byte) {
		assert.Empty(f, notes, "queues are apart")
		notes["a"] = []byte("x")
	}))
	got, err = s.Notes(ctx, queue, []string{"a", "b", "c"})
	require.NoError(f, err)
	assert.Equal(f, map[string][]byte{"a": []byte("40"), "b": {0, 255}}, got)
	require.NoError(f, s.ChangeNotes(ctx, queue, []string{"a", "b"}, func(notes map[string][]byte) { notes["a"] = nil }))
	got, err = s.Notes(ctx, queue, []string{"a", "b"})
	require.NoError(f, err)
	assert.Equal(f, map[string][]byte{"b": {0, 255}}, got)
}
