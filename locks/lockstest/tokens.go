package lockstest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
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
		{"tokens never go back while records go by themselves", func(t *testing.T, f *Fixture) {
			testTokens(t, f, func(s locks.Store, name locks.Name) error {
				_, err := s.Purge(t.Context(), name.Tenant, 10)
				return err
			}, soon)
		}},
		{"a step that finds no record takes no lease of one that is made meanwhile", testLeasesStay},
		{"a record that nobody uses goes, and its tokens go on", func(t *testing.T, f *Fixture) {
			a := f.mutex(soon)
			first := f.granted(f.Store, "k", a)
			require.Zero(t, f.purge(), "it is held")
			f.release(f.Store, "k", a)
			f.goes("k")
			require.Greater(t, f.granted(f.Other, "k", f.mutex()).Fence, first.Fence)
		}},
		{"a record that was written by hand, or has data, or is to be kept, stays", testStays},
		{"the record of brief requests goes with the last lease, the last that waits, or soon", testBrief},
		{"what was written by hand stays, also if brief requests use it", testBriefKept},
		{"records that are made have those go that nobody uses", testTidy},
		{"a record is deleted or its lock is held, never both", testDeleteOrHeld},
	}
}

// soon has a record go as soon as nobody uses it.
func soon(q *locks.Request) { q.Retention = time.Microsecond }

func (f *Fixture) purge() int {
	f.t.Helper()
	n, err := f.Other.Purge(f.t.Context(), f.Tenant, 100)
	require.NoError(f.t, err)
	return n
}

// goes purges until the record has gone. Its time has to come by the clock of the store, and
// somebody else who makes one of the same bucket may be quicker.
func (f *Fixture) goes(key string) {
	f.t.Helper()
	for range 1000 {
		f.purge()
		_, err := f.Other.Get(f.t.Context(), f.name(key))
		if errors.Is(err, locks.ErrNotFound) {
			return
		}
		require.NoError(f.t, err)
		time.Sleep(f.Lease / 50)
	}
	require.FailNow(f.t, "the record stays")
}

func testStays(t *testing.T, f *Fixture) {
	f.use(f.Store, "default", f.mutex())
	f.use(f.Store, "long", f.mutex(func(q *locks.Request) { q.Retention = 24 * time.Hour }))
	f.use(f.Store, "data", f.mutex(soon, func(q *locks.Request) { q.Data = ptr("") }))
	f.create(f.Store, "made", locks.Record{})
	f.use(f.Store, "made", f.mutex(soon))
	f.use(f.Store, "sized", f.permit(1, soon))
	f.create(f.Store, "sized", locks.Record{Kind: locks.Semaphore, Size: 2})
	f.use(f.Store, "sized", f.permit(2, soon))
	f.use(f.Store, "gone", f.mutex(soon))
	f.goes("gone")
	require.ElementsMatch(t, []string{"default", "long", "data", "made", "sized"}, f.list(f.Tenant))
}

// brief has a record go with the last that uses it.
func brief(q *locks.Request) { q.Brief, q.Retention = true, time.Microsecond }

func testBrief(t *testing.T, f *Fixture) {
	b, c := f.mutex(brief), f.mutex()
	f.use(f.Store, "k", f.mutex(brief))
	f.missing("k")
	f.granted(f.Store, "k", b)
	f.refused(f.Other, "k", c)
	f.release(f.Store, "k", b)
	f.release(f.Other, "k", c)
	f.missing("k")
	f.granted(f.Store, "k", f.mutex(brief, short(f)))
	f.goes("k") // when the lease of the dead has ended
}

func testBriefKept(t *testing.T, f *Fixture) {
	f.create(f.Store, "s", locks.Record{Kind: locks.Semaphore, Size: 3})
	b, c := f.permit(2, brief), f.permit(4, brief, func(q *locks.Request) { q.Resize = true })
	f.use(f.Store, "s", f.permit(5, brief))
	require.Equal(t, 3, f.get("s").Size)
	f.granted(f.Store, "made", b)
	f.granted(f.Other, "made", c)
	f.release(f.Store, "made", b)
	f.release(f.Other, "made", c)
	require.Equal(t, 4, f.get("made").Size)
	waits := f.mutex(func(q *locks.Request) { q.DeleteOnRelease = true })
	f.create(f.Store, "k", locks.Record{})
	d := f.mutex()
	f.granted(f.Store, "k", d)
	f.refused(f.Store, "k", waits)
	f.release(f.Store, "k", d)
	f.release(f.Store, "k", waits)
	f.get("k")
}

// testTidy makes records until few are left. A store may have them go beside its callers: each
// of the rounds takes about as long as that, however busy the machine.
func testTidy(t *testing.T, f *Fixture) {
	if f.Store.Traits().Simple {
		return // it cannot find them
	}
	const rounds = 200
	bucket, made, there := book.Bucket(f.name("0")), 0, 0
	for i := 1; made < 10 || there > 3; i++ {
		name := f.name(fmt.Sprint(i))
		if book.Bucket(name) != bucket {
			continue
		}
		made++
		f.use(f.Store, name.Key, f.mutex(soon))
		time.Sleep(min(time.Duration(made), 50) * time.Millisecond)
		there = len(f.list(f.Tenant))
		require.Less(t, made, rounds, "%d are there", there)
	}
}

// testDeleteOrHeld has somebody delete a record while somebody else takes its lock. If both
// succeed, the lock is that of a record which was made after the deletion.
func testDeleteOrHeld(t *testing.T, f *Fixture) {
	for i := range 20 {
		name := f.name(fmt.Sprint("k", i))
		f.create(f.Store, name.Key, locks.Record{})
		q := f.mutex(noWait)
		var turn locks.Turn
		var taken, deleted error
		var wg sync.WaitGroup
		wg.Go(func() { turn, taken = f.Store.Acquire(t.Context(), name, []locks.Request{q}) })
		wg.Go(func() { deleted = f.Other.Delete(t.Context(), name, "") })
		wg.Wait()
		require.NoError(t, taken)
		require.True(t, turn.Answers[0].Granted)
		if by := f.get(name.Key).CreatedBy; deleted == nil {
			require.Equal(t, q.Owner, by, "the record is there that was deleted")
		} else {
			require.ErrorIs(t, deleted, locks.ErrConflict)
			require.Equal(t, "maker", by)
		}
	}
}

// testLeasesStay has steps that change nothing meet the making of a record with a lease.
func testLeasesStay(t *testing.T, f *Fixture) {
	disturb := func(s locks.Store, name locks.Name) error {
		_, err := s.Release(t.Context(), name, locks.Ref{ID: ID()}, nil) // as who withdraws a request
		gone := locks.Renewal{Name: name, Ref: locks.Ref{ID: ID()}, Lease: f.Lease}
		beside := gone
		beside.Key = "beside"
		_, err2 := s.Renew(t.Context(), []locks.Renewal{gone, beside})
		_, err3 := s.Revoke(t.Context(), name, locks.Ref{ID: ID()}, true)
		return errors.Join(err, err2, err3)
	}
	goes := func(q *locks.Request) { q.DeleteOnRelease = true }
	testTokens(t, f, disturb, goes, func(q *locks.Request) { q.Kind, q.Size, q.Permits = locks.Semaphore, 1, 1 })
	if !f.Store.Traits().Simple {
		f.Tenant = "tenant-" + ID()
		testTokens(t, f, disturb, goes, func(q *locks.Request) { q.Kind = locks.ReadWrite })
	}
}

func nothing(locks.Store, locks.Name) error { return nil }

// testTokens has goroutines on two handles hold one lock in turn, and compares the fence of
// each grant with that of the grant before it. No lease is gone before it is given back. disturb
// is what two more do meanwhile. There are 300 grants, with the race detector 60, or as many as
// there is time for in LOCKS_TOKENS.
func testTokens(t *testing.T, f *Fixture, disturb func(s locks.Store, name locks.Name) error, change ...func(*locks.Request)) {
	const workers = 4
	begin, lasts := time.Now(), duration(t, "LOCKS_TOKENS", 0)
	goesOn := func(granted int64) bool {
		if lasts > 0 {
			return time.Since(begin) < lasts
		}
		return granted < int64(Fewer(300))
	}
	name := f.name("tokens")
	var last, granted, back, gone atomic.Int64
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
		released, err := s.Release(t.Context(), name, locks.Ref{ID: q.ID}, nil)
		if err == nil && !released {
			gone.Add(1)
		}
		return err
	}
	var wg sync.WaitGroup
	for w := range workers + 2 {
		s := f.handle(w)
		wg.Go(func() {
			for goesOn(granted.Load()) && !t.Failed() {
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
	t.Logf("%d tokens", granted.Load())
	require.Zero(t, gone.Load(), "so many of %d leases were gone before they were given back", granted.Load())
	require.Zero(t, back.Load(), "so many of %d tokens went back", granted.Load())
}
