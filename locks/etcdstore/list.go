package etcdstore

import (
	"bytes"
	"context"
	"math"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
)

// page is how many keys of etcd are read at a time.
const page = 512

// scan calls f with the locks of a tenant in the order of their keys, from the first key that is
// greater than after, until f says false.
func (s *Store) scan(ctx context.Context, tenant, after string, f func(st *state) bool) error {
	of := s.ofTenant(tenant)
	from, end := of, rangeEnd(of)
	if after != "" {
		from = rangeEnd(s.ofName(locks.Name{Tenant: tenant, Key: after}))
	}
	for more := true; more; {
		answer, err := s.kv.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
		if err != nil {
			return classed(ctx, err)
		}
		more = answer.More
		for kvs := answer.Kvs; len(kvs) > 0; {
			name := locks.Name{Tenant: tenant, Key: keyOf(string(kvs[0].Key[len(of):]))}
			prefix, n := s.ofName(name), 0
			for n < len(kvs) && bytes.HasPrefix(kvs[n].Key, []byte(prefix)) { // none if the key is not of this package
				n++
			}
			st, err := load(name, prefix, kvs[:n], answer.Header.Revision)
			if n == len(kvs) && more { // there may be more of it
				st, err = s.read(ctx, name)
			}
			if err != nil {
				return err
			}
			if st.r.Exists && !f(st) {
				return nil
			}
			from, kvs = rangeEnd(prefix), kvs[max(n, 1):]
		}
	}
	return nil
}

// List is a method of locks.Store.
func (s *Store) List(ctx context.Context, tenant, after string, most int) (records []locks.Record, err error) {
	err = s.scan(ctx, tenant, after, func(st *state) bool {
		now, r := st.resource()
		if r, err := r.Record(now); err == nil {
			r.Holders = nil
			records = append(records, r)
		}
		return len(records) < most
	})
	return records, err
}

// Purge is a method of locks.Store.
func (s *Store) Purge(ctx context.Context, tenant string, most int) (purged int, err error) {
	_, purged, err = s.purge(ctx, tenant, "", -1, most, math.MaxInt64)
	return purged, err
}

// purge looks at so many locks from a key on, all of them if it is -1, and deletes at most so many
// whose time has come, and that were made before a revision. It returns the last that it has
// looked at, "" if there are no more.
func (s *Store) purge(ctx context.Context, tenant, after string, looks, most int, before int64) (string, int, error) {
	var due []locks.Name
	last, purged := "", 0
	err := s.scan(ctx, tenant, after, func(st *state) bool {
		if now, r := st.resource(); st.keys[recordKey].created < before && r.Purge(now) {
			due = append(due, st.r.Name)
		}
		if looks--; looks == 0 || len(due) == most {
			last = st.r.Key
		}
		return last == ""
	})
	for _, name := range due {
		if err != nil {
			break
		}
		gone := false
		_, err = s.step(ctx, name, nil, func(now int64, r *book.Resource) { gone = r.Purge(now) })
		if gone && err == nil {
			purged++
		}
	}
	return last, purged, err
}

// A tidier has records go that nobody has used for long, some with each that is made.
type tidier struct {
	s *Store

	mu   sync.Mutex
	busy bool
	at   map[string]string // where it goes on, by tenant
}

const (
	tidyLooks = 8 // at how many records it looks for one that is made
	tidyGone  = 2 // how many of them go at most
	tidyTime  = 10 * time.Second
	tenants   = 1000 // of how many it knows where it was
)

// tidy begins to look for records that were made before that one, if it does not already.
func (t *tidier) tidy(made *state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy {
		return
	}
	after := t.at[made.r.Tenant]
	t.busy = t.s.goes(func() {
		ctx, cancel := context.WithTimeout(t.s.ctx, tidyTime)
		defer cancel()
		last, _, err := t.s.purge(ctx, made.r.Tenant, after, tidyLooks, tidyGone, made.keys[recordKey].created)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.busy = false
		if len(t.at) > tenants {
			clear(t.at)
		}
		if err == nil {
			t.at[made.r.Tenant] = last
		}
	})
}
