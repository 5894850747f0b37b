package lockstest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// Ahead tests that the leases of a lock end in their time where a greater token than the time
// was given to a lock that is gone: the clock of the store was ahead. raise writes such a token
// into the store.
func (f *Fixture) Ahead(raise func(name locks.Name, token int64)) {
	f.t.Helper()
	token := time.Now().Add(time.Hour).UnixMicro()
	raise(f.name("k"), token)
	before := token
	slow := 0
	for passes := 0; passes < 3; passes++ { // the record is made, and then is there
		q := f.mutex(short(f))
		sent := time.Now()
		dead := f.granted(f.Store, "k", q)
		require.Greater(f.t, dead.Fence, before)
		several := f.renew(f.Store, f.renewal("k", q), f.renewal("beside", q))[0].Verdict
		one := f.verdict(f.Store, "k", q)
		if time.Since(sent) >= f.Lease && slow < 20 { // the machine is slow: the lease may have ended by itself
			slow, passes = slow+1, passes-1
		} else {
			require.Equal(f.t, locks.Extended, several)
			require.Equal(f.t, locks.Extended, one)
		}
		next := f.mutex()
		before = f.keep(f.Other, "k", next).Fence
		require.Greater(f.t, before, dead.Fence)
		f.release(f.Other, "k", next)
	}
}

// SetBack tests that a request which has come while the clock of the store was ahead by an hour keeps its place no longer than
// another if its process goes away after the clock was set back. set has the clock be ahead by so much.
func (f *Fixture) SetBack(set func(ahead time.Duration)) {
	f.t.Helper()
	holder, dead := f.mutex(func(q *locks.Request) { q.Lease = 24 * time.Hour }), f.mutex()
	f.granted(f.Store, "k", holder)
	set(time.Hour)
	f.waitsAt(0, f.Store, "k", dead)
	set(0)
	f.waitsAt(0, f.Store, "k", dead)
	f.release(f.Store, "k", holder)
	f.keep(f.Other, "k", f.mutex())
}
