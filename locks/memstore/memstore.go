// Package memstore is a locks.Store in memory, for tests and for locks within one
// process. It works in testing/synctest bubbles.
package memstore

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/internal/hint"
)

func init() {
	locks.Register("mem", func(context.Context, string) (locks.Store, error) { return New(), nil })
}

// A Store is a locks.Store in memory.
type Store struct {
	now func() time.Time

	hints hint.Board[locks.Name]

	mu        sync.Mutex
	closed    bool
	floors    [book.Buckets]int64 // the greatest fence of the records of each that were deleted
	resources map[locks.Name]*book.Resource
}

// New returns an empty store.
func New() *Store { return WithClock(time.Now) }

// WithClock returns an empty store whose clock is now: tests set it forward and back.
func WithClock(now func() time.Time) *Store {
	return &Store{now: now, resources: map[locks.Name]*book.Resource{}}
}

// step does f with the resource of a name, and then gives hints to those that wait.
func (s *Store) step(ctx context.Context, name locks.Name, f func(now int64, r *book.Resource) error) error {
	if ctx.Err() != nil {
		return locks.Unavailable(context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return locks.Unavailable(locks.ErrClosed)
	}
	now := book.Micros(s.now())
	r := s.resources[name]
	if r == nil {
		r = &book.Resource{Name: name, Fence: s.floors[book.Bucket(name)]}
	}
	existed := r.Exists
	err := f(now, r)
	s.keep(r)
	if r.Exists && !existed {
		s.tidy(now)
	}
	if len(r.Wake(now)) > 0 {
		s.hints.Hint(name)
	}
	return err
}

// keep notes what a step has left of a resource. The caller has locked s.mu.
func (s *Store) keep(r *book.Resource) {
	if r.Exists {
		s.resources[r.Name] = r
		return
	}
	delete(s.resources, r.Name)
	floor := &s.floors[book.Bucket(r.Name)]
	*floor = max(*floor, r.Fence)
}

// tidy has two records go, if nobody has used them for long: any two, so in the end as many
// go as come. The caller has locked s.mu.
func (s *Store) tidy(now int64) {
	n := 0
	for _, r := range s.resources {
		if r.Purge(now) {
			s.keep(r)
		}
		if n++; n == 2 {
			return
		}
	}
}

// Purge looks at all records.
func (s *Store) Purge(ctx context.Context, tenant string, most int) (purged int, err error) {
	if ctx.Err() != nil {
		return 0, locks.Unavailable(context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, locks.Unavailable(locks.ErrClosed)
	}
	now := book.Micros(s.now())
	for name, r := range s.resources {
		if name.Tenant == tenant && purged < most && r.Purge(now) {
			s.keep(r)
			purged++
		}
	}
	return purged, nil
}

// Acquire is a method of locks.Store.
func (s *Store) Acquire(ctx context.Context, name locks.Name, requests []locks.Request) (turn locks.Turn, err error) {
	err = s.step(ctx, name, func(now int64, r *book.Resource) error {
		turn = r.Acquire(now, "", requests)
		return nil
	})
	return turn, err
}

// Release is a method of locks.Store.
func (s *Store) Release(ctx context.Context, name locks.Name, ref locks.Ref, data *string) (released bool, err error) {
	err = s.step(ctx, name, func(now int64, r *book.Resource) error {
		released = r.Release(now, ref, data)
		return nil
	})
	return released, err
}

// Renew is a method of locks.Store.
func (s *Store) Renew(ctx context.Context, renewals []locks.Renewal) ([]locks.RenewResult, error) {
	results := make([]locks.RenewResult, len(renewals))
	for i := range renewals {
		q := &renewals[i]
		err := s.step(ctx, q.Name, func(now int64, r *book.Resource) error {
			results[i] = r.Renew(now, q)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Listen gives a hint after each step by which a request may have become grantable.
func (s *Store) Listen(name locks.Name) (<-chan struct{}, func()) {
	return s.hints.Listen(name)
}

// Create is a method of locks.Store.
func (s *Store) Create(ctx context.Context, record locks.Record) (made locks.Record, err error) {
	err = s.step(ctx, record.Name, func(now int64, r *book.Resource) error {
		if err := r.Create(now, &record); err != nil {
			return err
		}
		made, err = r.Record(now)
		return err
	})
	return made, err
}

// Get is a method of locks.Store.
func (s *Store) Get(ctx context.Context, name locks.Name) (record locks.Record, err error) {
	err = s.step(ctx, name, func(now int64, r *book.Resource) error {
		record, err = r.Record(now)
		return err
	})
	return record, err
}

// List is a method of locks.Store.
func (s *Store) List(ctx context.Context, tenant, after string, most int) ([]locks.Record, error) {
	if ctx.Err() != nil {
		return nil, locks.Unavailable(context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, locks.Unavailable(locks.ErrClosed)
	}
	now := book.Micros(s.now())
	var records []locks.Record
	for name, r := range s.resources {
		if name.Tenant != tenant || name.Key <= after && after != "" {
			continue
		}
		if record, err := r.Record(now); err == nil {
			record.Holders = nil
			records = append(records, record)
		}
	}
	slices.SortFunc(records, func(a, b locks.Record) int { return cmp.Compare(a.Key, b.Key) })
	return records[:min(most, len(records))], nil
}

// Delete is a method of locks.Store.
func (s *Store) Delete(ctx context.Context, name locks.Name, version string) error {
	return s.step(ctx, name, func(now int64, r *book.Resource) error { return r.Delete(now, version) })
}

// Revoke is a method of locks.Store.
func (s *Store) Revoke(ctx context.Context, name locks.Name, ref locks.Ref, force bool) (n int, err error) {
	err = s.step(ctx, name, func(now int64, r *book.Resource) error {
		n = r.Revoke(now, ref, force)
		return nil
	})
	return n, err
}

// Traits says that memory can do everything.
func (s *Store) Traits() locks.Traits {
	return locks.Traits{Name: "mem", MinLease: 500 * time.Millisecond, Hints: true}
}

// Close has every later step fail.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
