package taskqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A store to which something happens before the first page of a list.
type meanwhile struct {
	taskqueue.Store
	once func()
}

func (s *meanwhile) List(ctx context.Context, queue string, r taskqueue.ListRequest) (taskqueue.Page, error) {
	if s.once != nil {
		s.once()
		s.once = nil
	}
	return s.Store.List(ctx, queue, r)
}

// A task that was there when the act began, and goes on to another state meanwhile, is not left.
func TestActsOnAllFindTasksThatGoOnToAnotherState(t *testing.T) {
	becomesDue := func(*testing.T, taskqueue.Store) { time.Sleep(time.Hour) }
	begins := func(t *testing.T, s taskqueue.Store) {
		_, err := s.Claim(t.Context(), store.ClaimRequest{Queue: "default", Worker: "w", Nonce: "1", Max: 1, Lease: time.Minute})
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		delay time.Duration
		once  func(*testing.T, taskqueue.Store)
		act   func(*taskqueue.Queue, context.Context, taskqueue.Filter) (int, error)
	}{
		"CancelAll of one that becomes due": {time.Minute, becomesDue, (*taskqueue.Queue).CancelAll},
		"DeleteAll of one that becomes due": {time.Minute, becomesDue, (*taskqueue.Queue).DeleteAll},
		"CancelAll of one that begins":      {0, begins, (*taskqueue.Queue).CancelAll},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				defer s.Close()
				q, err := taskqueue.New(&meanwhile{Store: s, once: func() { c.once(t, s) }})
				require.NoError(t, err)
				add(t, q, taskqueue.Task{Type: "t", Delay: c.delay})
				add(t, q, taskqueue.Task{Type: "t", Delay: 2 * time.Hour})
				n, err := c.act(q, t.Context(), taskqueue.Filter{})
				require.NoError(t, err)
				assert.Equal(t, 2, n)
			})
		})
	}
}
