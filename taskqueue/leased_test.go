package taskqueue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// recorder is a store that notes which leases are extended.
type recorder struct {
	Store
	extended []string
}

func (s *recorder) Extend(_ context.Context, r ExtendRequest) ([]ExtendResult, error) {
	for _, ref := range r.Refs {
		s.extended = append(s.extended, ref.ID)
	}
	return make([]ExtendResult, len(r.Refs)), nil
}

// After a suspend the worker may come to itself before the handler does.
func TestALeaseThatIsOverIsNotExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(recorder)
		w := &worker{q: &Queue{store: s}, o: &workOptions{lease: time.Second}, runs: map[runKey]*run{}}
		for id, end := range map[string]time.Time{"lasts": clock.Steady().Add(time.Minute), "is over": clock.Steady()} {
			r := &run{c: &Claim{Task: Task{ID: id}}, cancel: func(error) {}, deadline: time.AfterFunc(time.Hour, func() {})}
			defer r.deadline.Stop()
			r.end.Store(&end)
			w.runs[runKey{"q", Ref{ID: id}}] = r
		}
		ctx, cancel := context.WithTimeout(t.Context(), w.often()+time.Millisecond)
		defer cancel()
		assert.NoError(t, w.keepLeases(ctx, "q"))
		assert.Equal(t, []string{"lasts"}, s.extended)
	})
}

// As after a suspend: the lease is over, and the timer has not fired yet.
func TestTheContextOfAHandlerLooksAtTheLease(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context) error{
		"Err": func(ctx context.Context) error { return ctx.Err() },
		"Done": func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return context.Canceled
			default:
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			parent, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			r := &run{c: new(Claim), cancel: cancel, deadline: time.AfterFunc(time.Hour, func() {})}
			defer r.deadline.Stop()
			f := async.Start(parent, func(ctx context.Context) error {
				ctx = leased{ctx, r}
				r.lasts(clock.Steady().Add(time.Hour))
				assert.NoError(t, ask(ctx))
				over := clock.Steady()
				r.end.Store(&over)
				assert.Error(t, ask(ctx))
				assert.Equal(t, ErrLeaseLost, context.Cause(ctx))
				assert.True(t, r.gone())
				return nil
			})
			_, err := f.Join(context.Background())
			require.NoError(t, err)
		})
	}
}

// The goroutine that has noted that the lease is over has not cancelled the handler yet.
func TestAHandlerThatAsksLearnsOfALossThatIsBeingTold(t *testing.T) {
	parent, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r := &run{c: new(Claim), cancel: cancel}
	over := clock.Steady()
	r.end.Store(&over)
	r.phase.Store(gone)
	ctx := leased{parent, r}
	assert.ErrorIs(t, ctx.Err(), context.Canceled)
	assert.Equal(t, ErrLeaseLost, context.Cause(ctx))
}
