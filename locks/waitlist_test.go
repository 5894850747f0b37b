package locks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
)

// leavingStore grants a request when it is asked, and keeps what was withdrawn.
type leavingStore struct {
	Store
	granted, released []string
}

func (s *leavingStore) Traits() Traits { return Traits{} }

func (s *leavingStore) Acquire(_ context.Context, _ Name, requests []Request) (Turn, error) {
	answers := make([]Answer, len(requests))
	for i, r := range requests {
		s.granted = append(s.granted, r.ID)
		answers[i] = Answer{Granted: true, Grant: Grant{ID: r.ID}}
	}
	return Turn{Answers: answers}, nil
}

func (s *leavingStore) Release(_ context.Context, _ Name, ref Ref, _ *string) (bool, error) {
	s.released = append(s.released, ref.ID)
	return true, nil
}

// TestARequestOfAWaiterThatLeftIsWithdrawn: the waiter leaves after the waitlist has picked it,
// and before the store is asked. The store is asked for it all the same, so the request
// has to be withdrawn, or the lock would be granted to nobody for a whole lease.
func TestARequestOfAWaiterThatLeftIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leavingStore{}
		m, err := New(s)
		require.NoError(t, err)
		c, err := m.call("k", nil)
		require.NoError(t, err)
		w := newWaiter(m, m.name("k"), c)
		l := &waitlist{m: m, name: w.name, wake: make(chan struct{}, 1)}
		m.waitlists[w.name] = l
		w.future, w.promise = async.NewPromise[struct{}](t.Context())
		l.addLocked(w)

		batch, trip, _ := l.pick()
		require.Len(t, batch, 1)
		w.leave(t.Context(), RefusedTimedOut)
		go func() {
			time.Sleep(time.Second) // the call of the store is slow to begin
			l.ask(batch, trip)
		}()
		_, err = w.outcome(t.Context())
		assert.ErrorIs(t, err, ErrNotGranted)
		synctest.Wait()
		assert.Len(t, s.granted, 1)
		assert.Equal(t, s.granted, s.released)
	})
}
