package lockstest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// kinds are what semaphores, read-write locks and the options of a request promise.
func kinds() []Test {
	return []Test{
		{"a semaphore has as many holders as its size, each with a slot", func(t *testing.T, f *Fixture) {
			qs := []locks.Request{f.permit(3), f.permit(3), f.permit(3)}
			slots := map[int]bool{}
			for i, q := range qs {
				slots[f.granted(f.handle(i), "s", q).Slot] = true
			}
			require.Equal(t, map[int]bool{0: true, 1: true, 2: true}, slots)
			d := f.permit(3)
			f.refused(f.Store, "s", d)
			f.release(f.Other, "s", qs[1])
			require.Equal(t, 1, f.granted(f.Other, "s", d).Slot)
			record := f.get("s")
			require.Equal(t, 3, record.Busy)
			require.Equal(t, 3, record.Size)
			require.Equal(t, locks.Semaphore, record.Kind)
			require.Len(t, record.Holders, 3)
			for i := 1; i < 3; i++ {
				require.Greater(t, record.Holders[i].Fence, record.Holders[i-1].Fence)
			}
		}},
		{"a request for many permits is not starved by small ones", func(t *testing.T, f *Fixture) {
			if f.Store.Traits().Simple {
				return
			}
			a, b, c := f.permit(3, many(2)), f.permit(3, many(2)), f.permit(3)
			f.granted(f.Store, "s", a)
			f.refused(f.Store, "s", b)
			f.refused(f.Other, "s", c) // there is room for it, but not beside b
			require.Equal(t, 2, f.get("s").Busy)
			f.release(f.Store, "s", a)
			f.granted(f.Other, "s", c) // beside b, which has not come back yet
			f.granted(f.Store, "s", b)
			require.Equal(t, 3, f.get("s").Busy)
			f.fails(f.Store, "s", f.permit(3, many(4)), locks.ErrConflict)
		}},
		{"a semaphore has the size of its record, unless it is said that it is to change", func(t *testing.T, f *Fixture) {
			a, b := f.permit(2), f.permit(2)
			f.granted(f.Store, "s", a)
			f.granted(f.Store, "s", b)
			f.refused(f.Other, "s", f.permit(3, noWait))
			strict := f.permit(3, noWait)
			strict.Strict = true
			f.fails(f.Other, "s", strict, locks.ErrConflict)
			require.Equal(t, 2, f.get("s").Size)
			grow := f.permit(3)
			grow.Resize = true
			f.granted(f.Other, "s", grow)
			require.Equal(t, 3, f.get("s").Size)
			anySize := f.permit(0)
			f.refused(f.Other, "s", anySize)
		}},
		{"a request that names a smaller size waits for that, and nobody else does", func(t *testing.T, f *Fixture) {
			a, small, c := f.permit(3), f.permit(1), f.permit(3)
			f.granted(f.Store, "s", a)
			f.refused(f.Other, "s", small)
			f.granted(f.Store, "s", c) // beside the place that is kept for the small one
			f.refused(f.Store, "s", f.permit(3, noWait))
			f.release(f.Store, "s", a)
			f.refused(f.Other, "s", small)
			f.release(f.Store, "s", c)
			f.granted(f.Other, "s", small)
			f.granted(f.Store, "s", f.permit(3))
			require.Equal(t, 3, f.get("s").Size)
		}},
		{"an ID that has a permit is granted it again, and changes nothing, whatever the size is by now", func(t *testing.T, f *Fixture) {
			a := f.permit(3)
			a.Resize, a.Strict = true, true
			first := f.granted(f.Store, "s", a)
			f.create(f.Other, "s", locks.Record{Kind: locks.Semaphore, Size: 2})
			require.Equal(t, first.Fence, f.granted(f.Store, "s", a).Fence)
			require.Equal(t, 2, f.get("s").Size)
			require.Equal(t, 1, f.get("s").Busy)
		}},
		{"a semaphore that gets another size refuses nobody who waits", func(t *testing.T, f *Fixture) {
			a, b, c, d := f.permit(2), f.permit(2), f.permit(2), f.permit(2)
			f.granted(f.Store, "s", a)
			f.granted(f.Store, "s", b)
			f.refused(f.Other, "s", c)
			f.create(f.Other, "s", locks.Record{Kind: locks.Semaphore, Size: 1, Fair: true})
			f.refused(f.Other, "s", c)
			f.release(f.Store, "s", a)
			f.refused(f.Other, "s", c)
			f.create(f.Other, "s", locks.Record{Kind: locks.Semaphore, Size: 5, Fair: true})
			f.granted(f.Other, "s", c)
			f.refused(f.Other, "s", d) // two are held, and it named two
			f.release(f.Store, "s", b)
			f.granted(f.Other, "s", d)
			require.Equal(t, 5, f.get("s").Size)
		}},
		{"a semaphore that shrinks grants nothing until there is room", func(t *testing.T, f *Fixture) {
			qs := []locks.Request{f.permit(3), f.permit(3), f.permit(3)}
			for _, q := range qs {
				f.granted(f.Store, "s", q)
			}
			record := f.create(f.Other, "s", locks.Record{Kind: locks.Semaphore, Size: 1, Fair: true})
			require.Equal(t, 1, record.Size)
			require.Equal(t, 3, record.Busy)
			d := f.permit(1)
			for _, q := range qs {
				f.refused(f.Store, "s", d)
				f.release(f.Store, "s", q)
			}
			f.granted(f.Store, "s", d)
		}},
		{"readers share, a writer has it alone, and nobody passes a writer that waits", func(t *testing.T, f *Fixture) {
			if f.Store.Traits().Simple {
				return
			}
			r1, r2, w, r3 := f.reader(), f.reader(), f.writer(), f.reader()
			f.granted(f.Store, "rw", r1)
			f.granted(f.Other, "rw", r2)
			f.refused(f.Store, "rw", w)
			f.refused(f.Other, "rw", r3)
			f.release(f.Store, "rw", r1)
			f.refused(f.Store, "rw", w)
			f.release(f.Other, "rw", r2)
			f.granted(f.Store, "rw", w)
			f.refused(f.Other, "rw", r3)
			f.release(f.Store, "rw", w)
			require.True(t, f.granted(f.Other, "rw", r3).Shared)
		}},
		{"one that may barge passes those that wait, and no other does", func(t *testing.T, f *Fixture) {
			a, b, c, d := f.mutex(), f.mutex(), f.mutex(), f.mutex()
			d.Barging = true
			f.granted(f.Store, "k", a)
			f.refused(f.Store, "k", b)
			f.release(f.Store, "k", a)
			f.refused(f.Other, "k", c)
			f.granted(f.Other, "k", d)
		}},
		{"after an expiry, not after a release, the lock stays shut for the delay", func(t *testing.T, f *Fixture) {
			delay := 4 * f.Lease
			with := func(q *locks.Request) { q.LockDelay = delay }
			a, b, c := f.mutex(with), f.mutex(short(f), with), f.mutex()
			f.use(f.Store, "k", a)
			lost := f.granted(f.Store, "k", b)
			next := f.keep(f.Other, "k", c)
			require.False(t, next.Acquired.Before(lost.Expires.Add(delay-time.Millisecond)), "granted %v after the expiry", next.Acquired.Sub(lost.Expires))
		}},
		{"a lock that is shut is not deleted, with its last lease or by hand", func(t *testing.T, f *Fixture) {
			long := f.long()
			a := f.permit(2, short(f), func(q *locks.Request) { q.LockDelay = long })
			b := f.permit(2, func(q *locks.Request) { q.Lease, q.DeleteOnRelease = long, true })
			f.granted(f.Other, "s", b)
			f.granted(f.Store, "s", a) // last: from its end on nothing is granted
			for f.get("s").Busy > 1 {
				time.Sleep(f.Lease / 20)
			}
			f.release(f.Other, "s", b)
			f.refused(f.Store, "s", f.permit(2, noWait))
			require.ErrorIs(t, f.Other.Delete(t.Context(), f.name("s"), ""), locks.ErrConflict)
			f.refused(f.Store, "s", f.permit(2, noWait))
		}},
		{"a lock is of one kind", func(t *testing.T, f *Fixture) {
			f.granted(f.Store, "k", f.mutex())
			f.fails(f.Other, "k", f.permit(2), locks.ErrConflict)
			f.granted(f.Store, "s", f.permit(2))
			f.fails(f.Other, "s", f.mutex(), locks.ErrConflict)
			_, err := f.Other.Create(t.Context(), locks.Record{Name: f.name("s"), Kind: locks.Mutex, Lease: f.Lease})
			require.ErrorIs(t, err, locks.ErrConflict)
			if f.Store.Traits().Simple {
				return
			}
			f.granted(f.Store, "rw", f.reader())
			f.fails(f.Other, "rw", f.mutex(), locks.ErrConflict)
		}},
		{"a revoked lease is not renewed, and nobody else is granted the lock before it ends", func(t *testing.T, f *Fixture) {
			a, b := f.mutex(short(f)), f.mutex()
			long := f.mutex()
			f.granted(f.Store, "k", long)
			require.Equal(t, 1, f.revoke("k", locks.Ref{}, false))
			require.Equal(t, locks.Revoked, f.verdict(f.Store, "k", long))
			f.release(f.Store, "k", long)
			first := f.granted(f.Store, "k", a)
			f.revoke("k", locks.Ref{}, false)
			require.NotEqual(t, locks.Extended, f.verdict(f.Store, "k", a)) // if it has not ended by now, it was revoked
			second := f.keep(f.Other, "k", b)
			require.False(t, second.Acquired.Before(first.Expires))
			require.Zero(t, f.revoke("k", locks.Ref{Version: "other"}, false))
			require.Zero(t, f.revoke("nobody's", locks.Ref{}, false))
		}},
		{"a lease that is revoked by force is over at once, and its token stays behind", testForce},
		{"a lock that is shut is opened by force", func(t *testing.T, f *Fixture) {
			a, b := f.mutex(short(f), func(q *locks.Request) { q.LockDelay = 1000 * f.Lease }), f.mutex()
			f.granted(f.Store, "k", a)
			for f.get("k").Busy > 0 {
				time.Sleep(f.Lease / 20)
			}
			f.refused(f.Other, "k", b)
			f.revoke("k", locks.Ref{}, true)
			f.granted(f.Other, "k", b)
		}},
		{"force opens a lock also to those who come after dead ones that wait", func(t *testing.T, f *Fixture) {
			lives := f.mutex()
			first := f.granted(f.Store, "k", f.mutex())
			f.refused(f.Store, "k", f.mutex()) // and dies, where the store cannot know it
			f.refused(f.Store, "k", lives)
			f.revoke("k", locks.Ref{}, true)
			next := f.mutex()
			require.Greater(t, f.granted(f.Other, "k", next).Fence, first.Fence)
			require.Zero(t, f.refused(f.Store, "k", lives).Place)
			f.release(f.Other, "k", next)
			f.granted(f.Store, "k", lives)
		}},
		{"a revoked lease can be given back, and then the next has it", func(t *testing.T, f *Fixture) {
			a, b := f.mutex(), f.mutex()
			f.granted(f.Store, "k", a)
			f.refused(f.Store, "k", b)
			f.revoke("k", locks.Ref{Version: a.Version}, false)
			require.True(t, f.get("k").Holders[0].Revoked)
			f.refused(f.Store, "k", b)
			f.release(f.Store, "k", a)
			f.granted(f.Store, "k", b)
		}},
	}
}

func testForce(t *testing.T, f *Fixture) {
	a, b := f.mutex(), f.mutex()
	first := f.granted(f.Store, "k", a)
	f.refused(f.Other, "k", b)
	f.revoke("k", locks.Ref{}, false) // one that was revoked before, too
	require.Equal(t, 1, f.revoke("k", locks.Ref{}, true))
	require.Equal(t, locks.NotYours, f.verdict(f.Store, "k", a))
	require.Greater(t, f.granted(f.Other, "k", b).Fence, first.Fence)
	require.False(t, f.releases(f.Store, "k", locks.Ref{ID: a.ID}, nil))

	c, d := f.permit(2), f.permit(2)
	f.granted(f.Store, "s", c)
	kept := f.granted(f.Store, "s", d)
	require.Equal(t, 1, f.revoke("s", locks.Ref{Version: c.Version}, true))
	f.granted(f.Other, "s", f.permit(2))
	require.Equal(t, kept.Fence, f.granted(f.Store, "s", d).Fence, "the other has what it had")
}
