package lockstest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// steps are what acquiring, renewing and releasing promise.
func steps() []Test {
	return []Test{
		{"one holder at a time, and fences increase", func(t *testing.T, f *Fixture) {
			a, b := f.mutex(), f.mutex()
			first := f.granted(f.Store, "k", a)
			require.Positive(t, first.Fence)
			require.Equal(t, a.Version, first.Version)
			f.refused(f.Other, "k", b)
			f.release(f.Store, "k", a)
			second := f.granted(f.Other, "k", b)
			require.Greater(t, second.Fence, first.Fence)
		}},
		{"an ID that holds the lock is granted it again", func(t *testing.T, f *Fixture) {
			a := f.mutex()
			first := f.granted(f.Store, "k", a)
			again := f.granted(f.Other, "k", a)
			require.Equal(t, first.Fence, again.Fence)
			require.Equal(t, first.Slot, again.Slot)
			a.Lease = f.Lease
			require.False(t, f.granted(f.Store, "k", a).Expires.Before(again.Expires), "a lease never gets shorter")
			require.Equal(t, 1, f.get("k").Busy)
		}},
		{"grants follow the order of the requests", func(t *testing.T, f *Fixture) {
			a, b, c, d := f.mutex(), f.mutex(), f.mutex(), f.mutex()
			f.granted(f.Store, "k", a)
			f.waitsAt(0, f.Other, "k", b)
			f.waitsAt(1, f.Store, "k", c)
			f.waitsAt(2, f.Store, "k", d)
			f.waiters("k", 3)
			f.release(f.Store, "k", a)
			f.refused(f.Store, "k", d)
			f.refused(f.Store, "k", c)
			f.granted(f.Other, "k", b)
			f.release(f.Other, "k", b)
			f.refused(f.Store, "k", d)
			f.granted(f.Store, "k", c)
		}},
		{"a late request does not pass one that waits, though the lock is free", func(t *testing.T, f *Fixture) {
			a, b, c := f.mutex(), f.mutex(), f.mutex(noWait)
			f.granted(f.Store, "k", a)
			f.refused(f.Store, "k", b)
			f.release(f.Store, "k", a)
			f.refused(f.Other, "k", c)
			f.granted(f.Store, "k", b)
		}},
		{"a request that does not wait leaves nothing behind", func(t *testing.T, f *Fixture) {
			a, b, c := f.mutex(), f.mutex(noWait), f.mutex()
			f.granted(f.Store, "k", a)
			f.refused(f.Other, "k", b)
			require.Zero(t, f.get("k").Waiters)
			f.release(f.Store, "k", a)
			f.granted(f.Store, "k", c)
		}},
		{"several requests of one process in one step", func(t *testing.T, f *Fixture) {
			a, b, c := f.mutex(), f.mutex(), f.mutex(noWait)
			turn := f.try(f.Store, "k", a, b, c)
			require.True(t, turn.Answers[0].Granted)
			require.False(t, turn.Answers[1].Granted)
			require.False(t, turn.Answers[2].Granted)
			require.Equal(t, 0, turn.Answers[1].Place)
			require.Equal(t, "owner", turn.Answers[1].Holder)
			f.waiters("k", 1)
			f.release(f.Store, "k", a)
			turn = f.try(f.Store, "k", c, b)
			f.counts(!turn.Answers[0].Granted)
			require.False(t, turn.Answers[0].Granted, "b was first")
			require.True(t, turn.Answers[1].Granted)
		}},
		{"one that is withdrawn lets the next one go on", func(t *testing.T, f *Fixture) {
			a, b, c := f.mutex(), f.mutex(), f.mutex()
			f.granted(f.Store, "k", a)
			f.refused(f.Other, "k", b)
			f.refused(f.Store, "k", c)
			f.release(f.Other, "k", b)
			require.False(t, f.releases(f.Other, "k", locks.Ref{ID: b.ID}, nil), "a second time there is nothing")
			f.release(f.Store, "k", a)
			f.granted(f.Store, "k", c)
		}},
		{"a request that nobody asks for any more is forgotten, and is new when it comes back", func(t *testing.T, f *Fixture) {
			a, b, c := f.mutex(), f.mutex(), f.mutex()
			f.granted(f.Store, "k", a)
			since := f.try(f.Store, "k", b).Now
			turn := f.try(f.Other, "k", c)
			for ; turn.Answers[0].Place == 1; turn = f.try(f.Other, "k", c) {
				time.Sleep(50 * time.Millisecond)
			}
			require.GreaterOrEqual(t, turn.Now.Sub(since), locks.WaiterLife)
			f.waitsAt(1, f.Store, "k", b)
			f.release(f.Store, "k", a)
			f.refused(f.Store, "k", b)
			f.granted(f.Other, "k", c)
		}},
		{"an expired lease is granted to the next, and the old ID changes nothing", func(t *testing.T, f *Fixture) {
			a, b := f.mutex(short(f)), f.mutex()
			first := f.granted(f.Store, "k", a)
			if turn := f.try(f.Other, "k", b); !turn.Answers[0].Granted { // a busy machine may come late
				require.WithinDuration(t, first.Expires, turn.Next, 2*time.Second)
			}
			second := f.keep(f.Other, "k", b)
			require.Greater(t, second.Fence, first.Fence)
			require.False(t, second.Acquired.Before(first.Expires), "never before the lease is over")

			require.Equal(t, locks.NotYours, f.verdict(f.Store, "k", a))
			require.False(t, f.releases(f.Store, "k", locks.Ref{ID: a.ID}, ptr("stale")))
			record := f.get("k")
			require.Len(t, record.Holders, 1)
			require.Equal(t, b.Version, record.Holders[0].Version)
			require.Nil(t, record.Data)
		}},
		{"renewing gives time from now, never less than there was", func(t *testing.T, f *Fixture) {
			a := f.mutex()
			first := f.granted(f.Store, "k", a)
			r := f.renewal("k", a)
			r.Lease = 2 * f.long()
			long := f.renew(f.Store, r)[0]
			require.Equal(t, locks.Extended, long.Verdict)
			require.True(t, long.Grant.Expires.After(first.Expires))
			require.Equal(t, first.Fence, long.Grant.Fence)
			r.Lease = f.Lease
			require.False(t, f.renew(f.Other, r)[0].Grant.Expires.Before(long.Grant.Expires))
		}},
		{"renewals of many leases are answered in their order", func(t *testing.T, f *Fixture) {
			var all []locks.Renewal
			for i := range 40 {
				a := f.mutex()
				key := string(rune('z' - i%20))
				if i < 20 {
					f.granted(f.Store, key, a)
				} // the others hold nothing
				all = append(all, f.renewal(key, a))
			}
			for i, r := range f.renew(f.Store, all...) {
				if i < 20 {
					require.Equal(t, locks.Extended, r.Verdict)
					require.Equal(t, all[i].ID, r.Grant.ID)
				} else {
					require.Equal(t, locks.NotYours, r.Verdict)
				}
			}
			require.Empty(t, f.renew(f.Store))
		}},
		{"a request that waits cannot be renewed as if it held the lock", func(t *testing.T, f *Fixture) {
			a, b := f.mutex(), f.mutex()
			f.granted(f.Store, "k", a)
			f.refused(f.Store, "k", b)
			for _, ref := range []locks.Ref{{ID: b.ID}, {Version: b.Version}, {ID: ID()}, {Version: "other"}, {}} {
				require.Equal(t, locks.NotYours, f.renew(f.Store, locks.Renewal{Name: f.name("k"), Ref: ref, Lease: f.Lease})[0].Verdict)
			}
		}},
		{"a version names a lease, and may be changed", func(t *testing.T, f *Fixture) {
			a := f.mutex()
			f.granted(f.Store, "k", a)
			r := locks.Renewal{Name: f.name("k"), Ref: locks.Ref{Version: a.Version}, Lease: f.long(), NewVersion: "second"}
			for range 2 { // the second time as if the answer had been lost
				result := f.renew(f.Other, r)[0]
				require.Equal(t, locks.Extended, result.Verdict)
				require.Equal(t, "second", result.Grant.Version)
			}
			require.Equal(t, "second", f.get("k").Version)
			r.Ref.Version, r.NewVersion = "second", "third"
			require.Equal(t, locks.Extended, f.renew(f.Other, r)[0].Verdict)
			require.False(t, f.releases(f.Other, "k", locks.Ref{Version: a.Version}, nil), "the first version is two renewals old")
			require.True(t, f.releases(f.Other, "k", locks.Ref{Version: "third"}, nil))
		}},
		{"racing creators of a semaphore never grant one too many", testRacingCreators},
		{"histories of random programs are linearizable", testLinearizable},
		{"random programs go as the plain functions of package book say", testPrograms},
		{"a hint comes when a request may have become grantable", testHints},
		{"a hint comes for one that may pass those before it", testHintsOfBarging},
		{"a context that is done ends a step with ErrUnavailable", func(t *testing.T, f *Fixture) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := f.Store.Acquire(ctx, f.name("k"), []locks.Request{f.mutex()})
			require.ErrorIs(t, err, locks.ErrUnavailable)
			_, err = f.Store.Renew(ctx, []locks.Renewal{{Name: f.name("k"), Ref: locks.Ref{ID: ID()}, Lease: f.Lease}})
			require.ErrorIs(t, err, locks.ErrUnavailable)
			_, err = f.Store.Release(ctx, f.name("k"), locks.Ref{ID: ID()}, nil)
			require.ErrorIs(t, err, locks.ErrUnavailable)
		}},
	}
}

// testRacingCreators has eight goroutines, on two handles, take permits of a semaphore
// that none of them finds there, and counts.
func testRacingCreators(t *testing.T, f *Fixture) {
	const size, rounds, workers = 2, 12, 8
	for round := range rounds {
		key := "race-" + string(rune('a'+round))
		var wg sync.WaitGroup
		var mu sync.Mutex
		granted := map[int]bool{}
		for w := range workers {
			s := f.handle(w)
			wg.Go(func() {
				turn, err := s.Acquire(t.Context(), f.name(key), []locks.Request{f.permit(size, noWait)})
				if err != nil { // a store may say that it is busy
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if a := turn.Answers[0]; a.Granted {
					if granted[a.Grant.Slot] {
						t.Errorf("slot %d of %s was granted twice", a.Grant.Slot, key)
					}
					granted[a.Grant.Slot] = true
				}
			})
		}
		wg.Wait()
		if len(granted) > size || f.get(key).Busy > size {
			t.Fatalf("%d grants, %d busy, of %d", len(granted), f.get(key).Busy, size)
		}
	}
}

func testHints(t *testing.T, f *Fixture) {
	if !f.Store.Traits().Hints {
		return
	}
	hints, stop := f.Other.Listen(f.name("k"))
	defer stop()
	a, b, c := f.mutex(), f.mutex(), f.mutex()
	f.granted(f.Store, "k", a)
	end := time.After(time.Minute)
	hinted := func(step func()) {
		t.Helper()
		for { // what was hinted before
			select {
			case <-hints:
				continue
			default:
			}
			break
		}
		step()
		for {
			select {
			case <-hints:
				return
			case <-time.After(locks.WaiterLife / 3): // keep the requests alive
				f.try(f.Other, "k", b, c)
				if f.get("k").Waiters == 0 {
					return // granted by this: the hint is late, as hints may be
				}
			case <-end:
				require.FailNow(t, "no hint came")
			}
		}
	}
	f.try(f.Other, "k", b, c)
	hinted(func() { f.release(f.Store, "k", a) })
	if a := f.try(f.Other, "k", b, c).Answers[0]; a.Granted {
		hinted(func() { f.release(f.Store, "k", b) })
	}
}
