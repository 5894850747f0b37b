package jobqueue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// errBoom is what fails in tests.
var errBoom = errors.New("boom")

// queueOf returns a queue that holds jobs.
func queueOf[T comparable](jobs ...T) *jobqueue.Queue[T, T] {
	q := jobqueue.New[T]()
	q.AddAll(jobs...)
	return q
}

// isDone reports whether f has settled.
func isDone[T any](f *async.Future[T]) bool { return f.State() == async.StateDone }

// A page is a job with a key and something beside it.
type page struct {
	id   int
	text string
}

// never is a function for Do and Consume that is not to be called.
func never(context.Context, []int) error { panic("called") }

// take takes at most limit jobs, and there must be one.
func take[T comparable](t *testing.T, ctx context.Context, q *jobqueue.Queue[T, T], limit int) []T {
	jobs, err := q.Take(ctx, limit)
	require.NoError(t, err)
	return jobs
}
