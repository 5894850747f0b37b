package lockstest

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// ID returns 128 random bits in hex.
func ID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (f *Fixture) name(key string) locks.Name { return locks.Name{Tenant: f.Tenant, Key: key} }

// long is a lease that does not end while a test goes on, however busy the machine.
func (f *Fixture) long() time.Duration { return 200 * f.Lease }

// mutex is a request for a mutex that waits.
func (f *Fixture) mutex(change ...func(*locks.Request)) locks.Request {
	id := ID()
	q := locks.Request{ID: id, Version: "v-" + id, Owner: "owner", Kind: locks.Mutex, Lease: f.long(), Wait: true}
	for _, c := range change {
		c(&q)
	}
	return q
}

// permit is a request for one of size permits.
func (f *Fixture) permit(size int, change ...func(*locks.Request)) locks.Request {
	q := f.mutex(change...)
	q.Kind, q.Size, q.Permits = locks.Semaphore, size, max(q.Permits, 1)
	return q
}

func (f *Fixture) reader(change ...func(*locks.Request)) locks.Request {
	q := f.writer(change...)
	q.Shared = true
	return q
}

func (f *Fixture) writer(change ...func(*locks.Request)) locks.Request {
	q := f.mutex(change...)
	q.Kind = locks.ReadWrite
	return q
}

func short(f *Fixture) func(*locks.Request) {
	return func(q *locks.Request) { q.Lease = f.Lease }
}

func many(permits int) func(*locks.Request) {
	return func(q *locks.Request) { q.Permits = permits }
}

func noWait(q *locks.Request) { q.Wait = false }

// try takes one step with requests.
func (f *Fixture) try(s locks.Store, key string, requests ...locks.Request) locks.Turn {
	f.t.Helper()
	turn, err := s.Acquire(f.t.Context(), f.name(key), requests)
	require.NoError(f.t, err)
	require.Len(f.t, turn.Answers, len(requests))
	if slices.ContainsFunc(turn.Answers, func(a locks.Answer) bool { return !a.Granted }) {
		f.waits.CompareAndSwap(0, time.Now().UnixNano())
	}
	return turn
}

// granted takes one step and expects a grant.
func (f *Fixture) granted(s locks.Store, key string, q locks.Request) locks.Grant {
	f.t.Helper()
	turn := f.try(s, key, q)
	a := turn.Answers[0]
	require.NoError(f.t, a.Err)
	f.counts(a.Granted)
	require.True(f.t, a.Granted, "not granted, place %d", a.Place)
	require.Equal(f.t, q.ID, a.Grant.ID)
	return a.Grant
}

// refused takes one step and expects that it is not granted.
func (f *Fixture) refused(s locks.Store, key string, q locks.Request) locks.Answer {
	f.t.Helper()
	a := f.try(s, key, q).Answers[0]
	require.NoError(f.t, a.Err)
	f.counts(!a.Granted)
	require.False(f.t, a.Granted)
	return a
}

// waitsAt takes one step and expects that so many wait before it.
func (f *Fixture) waitsAt(place int, s locks.Store, key string, q locks.Request) {
	f.t.Helper()
	got := f.refused(s, key, q).Place
	f.counts(got == place)
	require.Equal(f.t, place, got)
}

// fails takes one step and expects that the request is refused with an error.
func (f *Fixture) fails(s locks.Store, key string, q locks.Request, want error) {
	f.t.Helper()
	require.ErrorIs(f.t, f.try(s, key, q).Answers[0].Err, want)
}

func (f *Fixture) release(s locks.Store, key string, q locks.Request) {
	f.t.Helper()
	ok := f.releases(s, key, locks.Ref{ID: q.ID}, nil)
	f.counts(ok)
	require.True(f.t, ok)
}

// releases gives back what there is to give back, and says whether there was anything.
func (f *Fixture) releases(s locks.Store, key string, ref locks.Ref, data *string) bool {
	f.t.Helper()
	ok, err := s.Release(f.t.Context(), f.name(key), ref, data)
	require.NoError(f.t, err)
	return ok
}

// use takes a lock and gives it back.
func (f *Fixture) use(s locks.Store, key string, q locks.Request) locks.Grant {
	f.t.Helper()
	g := f.granted(s, key, q)
	f.release(s, key, q)
	return g
}

func (f *Fixture) renew(s locks.Store, r ...locks.Renewal) []locks.RenewResult {
	f.t.Helper()
	results, err := s.Renew(f.t.Context(), r)
	require.NoError(f.t, err)
	require.Len(f.t, results, len(r))
	return results
}

// renewal is one of the lease of a request, for as long as that.
func (f *Fixture) renewal(key string, q locks.Request) locks.Renewal {
	return locks.Renewal{Name: f.name(key), Ref: locks.Ref{ID: q.ID}, Lease: q.Lease}
}

// verdict renews the lease of a request.
func (f *Fixture) verdict(s locks.Store, key string, q locks.Request) locks.RenewVerdict {
	f.t.Helper()
	return f.renew(s, f.renewal(key, q))[0].Verdict
}

// revoke says how many leases it has revoked.
func (f *Fixture) revoke(key string, ref locks.Ref, force bool) int {
	f.t.Helper()
	n, err := f.Other.Revoke(f.t.Context(), f.name(key), ref, force)
	require.NoError(f.t, err)
	return n
}

// create makes a record, of a mutex if r does not say of what.
func (f *Fixture) create(s locks.Store, key string, r locks.Record) locks.Record {
	f.t.Helper()
	r.Name, r.Kind, r.Lease, r.CreatedBy = f.name(key), max(r.Kind, locks.Mutex), max(r.Lease, f.Lease), "maker"
	r.Version = cmp.Or(r.Version, ID())
	made, err := s.Create(f.t.Context(), r)
	require.NoError(f.t, err)
	return made
}

// missing expects that there is no record.
func (f *Fixture) missing(key string) {
	f.t.Helper()
	_, err := f.Other.Get(f.t.Context(), f.name(key))
	require.ErrorIs(f.t, err, locks.ErrNotFound)
}

// list returns the keys of a tenant, in their order.
func (f *Fixture) list(tenant string) (keys []string) {
	f.t.Helper()
	page, err := f.Other.List(f.t.Context(), tenant, "", 200)
	require.NoError(f.t, err)
	for _, r := range page {
		keys = append(keys, r.Key)
	}
	return keys
}

// handle is one of the two, in turns.
func (f *Fixture) handle(i int) locks.Store { return []locks.Store{f.Store, f.Other}[i%2] }

func (f *Fixture) get(key string) locks.Record {
	f.t.Helper()
	record, err := f.Other.Get(f.t.Context(), f.name(key))
	f.counts(err == nil)
	require.NoError(f.t, err)
	return record
}

// waiters looks how many requests wait.
func (f *Fixture) waiters(key string, want int) {
	f.t.Helper()
	got := f.get(key).Waiters
	f.counts(got == want)
	require.Equal(f.t, want, got)
}

// keep repeats a step until the request is granted, as a process that waits does. It
// says how it went on if it is not granted in a long time.
func (f *Fixture) keep(s locks.Store, key string, q locks.Request) locks.Grant {
	f.t.Helper()
	end := time.Now().Add(max(time.Minute, 20*f.Lease))
	for {
		turn := f.try(s, key, q)
		a := turn.Answers[0]
		require.NoError(f.t, a.Err)
		if a.Granted {
			return a.Grant
		}
		if time.Now().After(end) {
			require.FailNow(f.t, "never granted", fmt.Sprintf("place %d, next %v, now %v", a.Place, turn.Next, turn.Now))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func ptr[T any](v T) *T { return &v }
