package lockstest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// tokens are what fences promise while the record of a lock goes and comes back.
func tokens() []Test {
	return []Test{
		{"tokens never go back while the record goes with each release", func(t *testing.T, f *Fixture) {
			testTokens(t, f, nothing, func(q *locks.Request) { q.DeleteOnRelease = true })
		}},
		{"tokens never go back while the record is deleted and made again", func(t *testing.T, f *Fixture) {
			testTokens(t, f, func(s locks.Store, name locks.Name) error {
				if err := s.Delete(t.Context(), name, ""); !errors.Is(err, locks.ErrConflict) && !errors.Is(err, locks.ErrNotFound) {
					return err
				}
				_, err := s.Create(t.Context(), locks.Record{Name: name, Kind: locks.Mutex, Lease: f.Lease, Version: ID(), CreatedBy: "maker"})
				if errors.Is(err, locks.ErrConflict) {
					return nil
				}
				return err
			})
		}},
	}
}

func nothing(locks.Store, locks.Name) error { return nil }

// testTokens has goroutines on two handles hold one lock in turn, and compares the fence of
// each grant with that of the grant before it. disturb is what two more do meanwhile.
func testTokens(t *testing.T, f *Fixture, disturb func(s locks.Store, name locks.Name) error, change ...func(*locks.Request)) {
	const workers, grants = 4, 300
	name := f.name("tokens")
	var last, granted, back atomic.Int64
	work := func(s locks.Store) error {
		q := f.mutex(append(change, noWait)...)
		turn, err := s.Acquire(t.Context(), name, []locks.Request{q})
		if err != nil || !turn.Answers[0].Granted {
			return err
		}
		fence := turn.Answers[0].Grant.Fence // nobody else has the lock until it is released
		if before := last.Swap(fence); fence <= before {
			back.Add(1)
		}
		granted.Add(1)
		_, err = s.Release(t.Context(), name, locks.Ref{ID: q.ID}, nil)
		return err
	}
	var wg sync.WaitGroup
	for w := range workers + 2 {
		s := []locks.Store{f.Store, f.Other}[w%2]
		wg.Go(func() {
			for granted.Load() < grants && !t.Failed() {
				err := work(s)
				if w >= workers {
					err = errors.Join(err, disturb(s, name))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, back.Load(), "so many of %d tokens went back", granted.Load())
}
