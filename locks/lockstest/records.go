package lockstest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// records are what the administration promises.
func records() []Test {
	return []Test{
		{"only what exists, if that is asked", func(t *testing.T, f *Fixture) {
			q := f.mutex()
			q.OnlyIfExists = true
			f.fails(f.Store, "k", q, locks.ErrNotFound)
			f.missing("k")
			f.create(f.Other, "k", locks.Record{})
			f.granted(f.Store, "k", q)
		}},
		{"a record is made, found, changed and deleted", func(t *testing.T, f *Fixture) {
			want := locks.Record{
				Name: f.name("s"), Kind: locks.Semaphore, Size: 7, Lease: 9 * f.Lease, Fair: true, Data: ptr("d\x00ä"),
				DeleteOnRelease: true, Version: "one", CreatedBy: "maker",
			}
			made := f.create(f.Store, "s", want)
			got := f.get("s")
			require.False(t, got.CreatedAt.IsZero())
			require.WithinDuration(t, got.CreatedAt, made.CreatedAt, 0)
			for _, r := range []locks.Record{made, got} {
				r.CreatedAt, r.UpdatedAt, r.UpdatedBy = want.CreatedAt, want.UpdatedAt, want.UpdatedBy
				r.Fence = 0 // it may be above those of what other tests have deleted
				require.Equal(t, want, r)
			}
			want.Size, want.Data, want.Lease, want.Version = 5, nil, 8*f.Lease, "two"
			again := f.create(f.Other, "s", want)
			require.Equal(t, 5, again.Size)
			require.Equal(t, "d\x00ä", *again.Data, "no data: as it was")
			require.Equal(t, "one", again.Version)

			require.ErrorIs(t, f.Store.Delete(t.Context(), f.name("s"), "wrong"), locks.ErrConflict)
			require.NoError(t, f.Store.Delete(t.Context(), f.name("s"), "one"))
			require.ErrorIs(t, f.Store.Delete(t.Context(), f.name("s"), ""), locks.ErrNotFound)
		}},
		{"what is held or waited for is not deleted", func(t *testing.T, f *Fixture) {
			a := f.mutex()
			f.granted(f.Store, "k", a)
			require.ErrorIs(t, f.Other.Delete(t.Context(), f.name("k"), ""), locks.ErrConflict)
			b := f.mutex()
			f.refused(f.Other, "k", b)
			f.release(f.Store, "k", a)
			err := f.Store.Delete(t.Context(), f.name("k"), "")
			f.counts(err != nil)
			require.ErrorIs(t, err, locks.ErrConflict)
			f.release(f.Other, "k", b)
			require.NoError(t, f.Store.Delete(t.Context(), f.name("k"), ""))
		}},
		{"fences go on over a delete", func(t *testing.T, f *Fixture) {
			first := f.use(f.Store, "k", f.mutex())
			require.NoError(t, f.Store.Delete(t.Context(), f.name("k"), ""))
			require.Greater(t, f.granted(f.Store, "k", f.mutex()).Fence, first.Fence)
		}},
		{"nothing but the fence goes on over a delete", func(t *testing.T, f *Fixture) {
			f.create(f.Store, "k", locks.Record{Data: ptr("old"), DeleteOnRelease: true, LockDelay: time.Hour})
			require.NoError(t, f.Store.Delete(t.Context(), f.name("k"), ""))
			f.use(f.Other, "k", f.mutex())
			now := f.get("k")
			require.Nil(t, now.Data)
			require.False(t, now.DeleteOnRelease)
			require.Zero(t, now.LockDelay)
			require.Equal(t, "owner", now.CreatedBy)
		}},
		{"a record is deleted with its last lease if that was asked, unless somebody waits", func(t *testing.T, f *Fixture) {
			with := func(q *locks.Request) { q.DeleteOnRelease = true }
			a, b := f.mutex(with), f.mutex(with)
			f.granted(f.Store, "k", a)
			f.refused(f.Other, "k", b)
			f.release(f.Store, "k", a)
			f.waiters("k", 1)
			f.use(f.Other, "k", b)
			f.missing("k")
		}},
		{"data comes with a grant, a renewal or a release", func(t *testing.T, f *Fixture) {
			a, b := f.mutex(), f.mutex(noWait)
			a.Data, b.Data = ptr("first"), ptr("never granted")
			f.granted(f.Store, "k", a)
			f.refused(f.Other, "k", b)
			require.Equal(t, "first", *f.get("k").Data)
			r := f.renewal("k", a)
			f.renew(f.Store, r)
			require.Equal(t, "first", *f.get("k").Data)
			r.Data = ptr("")
			f.renew(f.Store, r)
			require.Empty(t, *f.get("k").Data)
			f.releases(f.Store, "k", locks.Ref{ID: a.ID}, ptr("last"))
			require.Equal(t, "last", *f.get("k").Data)
		}},
		{"a list has the records of its tenant in the order of their keys, page by page", func(t *testing.T, f *Fixture) {
			var want []string
			for i := range 7 {
				key := fmt.Sprintf("key/%d", i)
				f.granted(f.Store, key, f.mutex())
				want = append(want, key)
			}
			other := f.name("key/3")
			other.Tenant += "x"
			_, err := f.Store.Acquire(t.Context(), other, []locks.Request{f.mutex()})
			require.NoError(t, err)
			var got []string
			after := ""
			for {
				page, err := f.Other.List(t.Context(), f.Tenant, after, 3)
				require.NoError(t, err)
				if len(page) == 0 {
					break
				}
				for _, r := range page {
					require.Equal(t, f.Tenant, r.Tenant)
					require.Equal(t, 1, r.Busy)
					got, after = append(got, r.Key), r.Key
				}
			}
			require.Equal(t, want, got)
		}},
		{"tenants and keys of any bytes never meet", testNames},
	}
}

// testNames takes, under many tenants and keys that a careless encoding would mix up,
// a lock each, and finds each one again.
func testNames(t *testing.T, f *Fixture) {
	parts := []string{
		"a", "A", "a ", "a\x00", "\x00a", "a/b", "a:b", "a_b", "a%b", "{a}", "a{b}c", "a'b", "a\"b", "a\\b", "a;b", "a--b", "ä", "a\u0308",
		"\xff\xfe", "1:a", "日本", "' OR '1'='1", "'); DROP TABLE lk_resource; --", "\r\nFLUSHALL\r\n", "}{", "*", "[a]", "$1", "?", strings.Repeat("k", 200),
	}
	grants := map[locks.Name]locks.Request{}
	for i, tenant := range parts {
		for _, key := range []string{parts[(i+1)%len(parts)], parts[(i*7+3)%len(parts)], "a"} {
			name := locks.Name{Tenant: f.Tenant + tenant, Key: key}
			if len(name.Tenant) > 128 {
				name.Tenant = f.Tenant
			}
			if _, there := grants[name]; there {
				continue
			}
			q := f.mutex()
			q.Data = ptr(name.Tenant + "\x00" + name.Key)
			turn, err := f.Store.Acquire(t.Context(), name, []locks.Request{q})
			require.NoError(t, err, "%q", name)
			require.True(t, turn.Answers[0].Granted, "%q is held already", name)
			grants[name] = q
		}
	}
	listed := map[string][]string{}
	for name, q := range grants {
		record, err := f.Other.Get(t.Context(), name)
		require.NoError(t, err, "%q", name)
		require.Equal(t, name, record.Name)
		require.Equal(t, q.Version, record.Version)
		require.Equal(t, *q.Data, *record.Data)
		listed[name.Tenant] = append(listed[name.Tenant], name.Key)
	}
	for tenant, keys := range listed {
		slices.Sort(keys)
		require.Equal(t, keys, f.list(tenant), "of tenant %q", tenant)
	}
}
