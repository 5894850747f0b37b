package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/locks"
)

// act carries out an act of administration.
func (s *Store) act(ctx context.Context, name locks.Name, args ...any) (answer, error) {
	return s.actOn(ctx, s.keys(name), append([]any{s.channels(), name.Key}, args...)...)
}

func (s *Store) actOn(ctx context.Context, keys []string, args ...any) (answer, error) {
	a, err := s.run(ctx, s.admin, keys, args...)
	if err != nil {
		return a, err
	}
	switch a.at(0).text() {
	case "none":
		return a, locks.ErrNotFound
	case "kind":
		return a, locks.Conflict("it is a %s", locks.Kind(a.at(1).number()))
	case "held":
		return a, locks.Conflict("it is held")
	case "waited":
		return a, locks.Conflict("it is waited for")
	case "shut":
		return a, locks.Conflict("it is shut, after a lease that has expired")
	case "version":
		return a, locks.Conflict("it has another version")
	}
	return a, nil
}

// Create is a method of locks.Store.
func (s *Store) Create(ctx context.Context, r locks.Record) (locks.Record, error) {
	a, err := s.act(ctx, r.Name, "create", int(r.Kind), r.Size, micros(r.Lease), r.Fair, r.DeleteOnRelease, micros(r.LockDelay),
		r.Version, r.CreatedBy, optional(r.Data))
	if err != nil {
		return locks.Record{}, err
	}
	return a.at(1).record(r.Name), nil
}

// Delete is a method of locks.Store.
func (s *Store) Delete(ctx context.Context, name locks.Name, version string) error {
	_, err := s.act(ctx, name, "delete", version)
	return err
}

// purges is at how many records a step of Purge looks, so that it holds up nobody for long.
const purges = 100

// Purge is a method of locks.Store. It looks at what is due when it begins: what is held is due
// again soon.
func (s *Store) Purge(ctx context.Context, tenant string, most int) (purged int, err error) {
	for n := range int64(parts) {
		keys, until := partKeys(s.partOf(tenant, n), ""), int64(0)
		for looked := int64(1); looked > 0 && purged < most; {
			a, err := s.actOn(ctx, keys, s.channels(), "", "purge", min(purges, most-purged), until)
			if err != nil {
				return purged, err
			}
			looked, purged, until = a.at(1).number(), purged+int(a.at(2).number()), a.at(3).number()
		}
	}
	return purged, nil
}

// Revoke is a method of locks.Store.
func (s *Store) Revoke(ctx context.Context, name locks.Name, ref locks.Ref, force bool) (int, error) {
	a, err := s.act(ctx, name, "revoke", ref.ID, ref.Version, force)
	return int(a.at(1).number()), err
}

// Get is a method of locks.Store.
func (s *Store) Get(ctx context.Context, name locks.Name) (locks.Record, error) {
	return s.look(ctx, name)
}

func (s *Store) look(ctx context.Context, name locks.Name) (locks.Record, error) {
	a, err := s.run(ctx, s.read, s.keys(name), s.channels(), name.Key, true)
	if err != nil {
		return locks.Record{}, err
	}
	if a.len() == 0 {
		return locks.Record{}, locks.ErrNotFound
	}
	return a.record(name), nil
}

// List is a method of locks.Store. It is many steps: a record that is made or deleted
// meanwhile is in it or not.
func (s *Store) List(ctx context.Context, tenant, after string, most int) ([]locks.Record, error) {
	if s.closed.Load() {
		return nil, locks.Unavailable(locks.ErrClosed)
	}
	var records []locks.Record
	for len(records) < most {
		keys, err := s.following(ctx, tenant, after, most-len(records))
		if err != nil {
			return nil, classed(err)
		}
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			after = key
			r, err := s.look(ctx, locks.Name{Tenant: tenant, Key: key})
			if errors.Is(err, locks.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			r.Holders = nil
			records = append(records, r)
		}
	}
	return records, nil
}

// following returns the keys of the locks of a tenant that come after one, at most so many. Each
// part has an index of its own.
func (s *Store) following(ctx context.Context, tenant, after string, most int) (keys []string, err error) {
	by := &redis.ZRangeBy{Min: "-", Max: "+", Count: int64(most)}
	if after != "" {
		by.Min = "(" + after
	}
	answers, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range int64(parts) {
			p.ZRangeByLex(ctx, s.partOf(tenant, n)+"#i", by)
		}
		return nil
	})
	for _, a := range answers {
		keys = append(keys, a.(*redis.StringSliceCmd).Val()...)
	}
	slices.Sort(keys)
	return keys[:min(most, len(keys))], err
}
