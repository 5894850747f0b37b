package scheduler_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/scheduler"
)

func TestTasksRunInOrder(t *testing.T) {
	w := scheduler.New(scheduler.Goroutines()).NewWorker(t.Context())
	x := 0 // no lock
	for i := range 1000 {
		require.NoError(t, w.Post(func() {
			if x != i {
				t.Errorf("%d ran after %d others", i, x)
			}
			x++
		}))
	}
	v, err := scheduler.Call(t.Context(), w, func(context.Context) (int, error) { return x, nil })
	require.NoError(t, err)
	require.Equal(t, 1000, v)
	require.NoError(t, w.Drain(t.Context()))
}
