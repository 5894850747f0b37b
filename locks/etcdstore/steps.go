package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// few is how many requests a step takes where all of them together would change too much.
const few = 40

// Acquire is a method of locks.Store. Many requests that are new are several steps.
func (s *Store) Acquire(ctx context.Context, name locks.Name, requests []locks.Request) (turn locks.Turn, err error) {
	turn, err = s.acquire(ctx, name, requests)
	if !errors.Is(err, errTooMany) {
		return turn, err
	}
	var answers []locks.Answer
	for begin := 0; begin < len(requests); begin += few {
		turn, err = s.acquire(ctx, name, requests[begin:min(begin+few, len(requests))])
		if err != nil {
			return locks.Turn{}, err
		}
		answers = append(answers, turn.Answers...)
	}
	turn.Answers = answers
	return turn, nil
}

func (s *Store) acquire(ctx context.Context, name locks.Name, requests []locks.Request) (turn locks.Turn, err error) {
	named := map[string]bool{}
	for i := range requests {
		named[requests[i].ID] = true
	}
	made := false
	after, err := s.step(ctx, name, named, func(now int64, r *book.Resource) {
		made = made || !r.Exists
		turn = r.Acquire(now, s.id, requests)
	})
	if err != nil {
		return locks.Turn{}, err
	}
	s.watches.near(after)
	for i := range turn.Answers {
		a := &turn.Answers[i]
		if k, there := after.keys[holdKey+a.Grant.ID]; there {
			a.Grant.Fence = k.created
		}
	}
	if made && after.r.Exists {
		s.tidier.tidy(after)
	}
	return turn, nil
}

// Release is a method of locks.Store.
func (s *Store) Release(ctx context.Context, name locks.Name, ref locks.Ref, data *string) (released bool, err error) {
	_, err = s.step(ctx, name, nil, func(now int64, r *book.Resource) { released = r.Release(now, ref, data) })
	return released && err == nil, err
}

// Create is a method of locks.Store.
func (s *Store) Create(ctx context.Context, record locks.Record) (made locks.Record, err error) {
	var refused error
	_, err = s.step(ctx, record.Name, nil, func(now int64, r *book.Resource) {
		if refused = r.Create(now, &record); refused == nil {
			made, refused = r.Record(now)
		}
	})
	return made, cmp.Or(err, refused)
}

// Get is a method of locks.Store.
func (s *Store) Get(ctx context.Context, name locks.Name) (locks.Record, error) {
	st, err := s.read(ctx, name)
	if err != nil {
		return locks.Record{}, err
	}
	now, r := st.resource()
	if err := s.look(ctx, st, now, r); err != nil {
		return locks.Record{}, err
	}
	return r.Record(now)
}

// mostLooks is for how many leases Get asks when they end.
const mostLooks = 16

// look finds out when leases end that were renewed since the key was written.
func (s *Store) look(ctx context.Context, st *state, now int64, r *book.Resource) error {
	looks := 0
	for i := range r.Entries {
		e := &r.Entries[i]
		if !e.Held || e.Expires != now+e.Lease || looks == mostLooks {
			continue
		}
		looks++
		left, err := s.leases.left(ctx, st.keys[suffix(e)].lease)
		if err != nil {
			return err
		}
		e.Expires = min(e.Expires, now+max(left, 1)*time.Second.Microseconds())
	}
	return nil
}

// Delete is a method of locks.Store.
func (s *Store) Delete(ctx context.Context, name locks.Name, version string) error {
	var refused error
	_, err := s.step(ctx, name, nil, func(now int64, r *book.Resource) { refused = r.Delete(now, version) })
	return cmp.Or(err, refused)
}

// Revoke is a method of locks.Store. A lease that is revoked gets a lease of etcd of its own, which
// nobody renews. Many leases take several steps.
func (s *Store) Revoke(ctx context.Context, name locks.Name, ref locks.Ref, force bool) (n int, err error) {
	if force || ref != (locks.Ref{}) {
		_, err = s.step(ctx, name, nil, func(now int64, r *book.Resource) { n = r.Revoke(now, ref, force) })
		return n, err
	}
	for some, again := 0, true; again && err == nil; n += some {
		_, err = s.step(ctx, name, nil, func(now int64, r *book.Resource) {
			some, again = 0, false
			for i := range r.Entries {
				switch e := &r.Entries[i]; {
				case !e.Held || e.Revoked:
				case some == few:
					again = true
				default:
					some += r.Revoke(now, locks.Ref{ID: e.ID}, false)
				}
			}
		})
	}
	return n, err
}
