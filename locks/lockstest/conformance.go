// Package lockstest tests stores of package locks: what each step promises, what holds
// whatever happens to processes, servers and networks, and what tools find in the
// histories of random programs. Writers of a store of their own call [Run].
package lockstest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
)

// A Test is one promise of a store.
type Test struct {
	Name string
	Run  func(t *testing.T, f *Fixture)
}

// Tests returns all of them. Stores whose time can be virtual run each in a
// testing/synctest bubble of its own; the others use [Run].
func Tests() []Test {
	tests := slices.Concat(steps(), kinds(), records(), tokens())
	for i := range tests {
		tests[i] = patient(tests[i])
	}
	return tests
}

// Run tests a store. open returns a handle of its own, as another process would have,
// to one and the same database; it may hold other locks, for each test uses names of
// its own. The tests run in parallel.
func Run(t *testing.T, open func(t testing.TB) locks.Store) {
	run(t, Tests(), open)
}

func run(t *testing.T, tests []Test, open func(t testing.TB) locks.Store) {
	for _, test := range tests {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			test.Run(t, NewFixture(t, open))
		})
	}
}

// RunAgain tests a store once more that was opened in another way. With the race detector,
// which makes all ten times as slow, it leaves out the tests that do random or racing steps
// in great numbers.
func RunAgain(t *testing.T, open func(t testing.TB) locks.Store) {
	run(t, slices.DeleteFunc(Tests(), func(test Test) bool {
		return raceDetector && slices.ContainsFunc(numerous, func(name string) bool { return strings.HasPrefix(test.Name, name) })
	}), open)
}

// numerous are what the names of such tests begin with.
var numerous = []string{"tokens never go back", "random programs", "histories of"}

// A Fixture is what a test has: two handles to one database, and a tenant of its own.
type Fixture struct {
	t      testing.TB
	Store  locks.Store
	Other  locks.Store
	Tenant string
	Lease  time.Duration // the shortest that the store likes

	again int          // how often the test may be begun anew
	waits atomic.Int64 // when a request was first left waiting, by the wall; 0: none was
}

// NewFixture opens two handles.
func NewFixture(t testing.TB, open func(t testing.TB) locks.Store) *Fixture {
	f := &Fixture{t: t, Store: open(t), Other: open(t), Tenant: "tenant-" + ID()}
	f.Lease = max(f.Store.Traits().MinLease, 500*time.Millisecond)
	return f
}

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

// counts is told of each thing that a test looks at. If it is not as it should be, and the
// machine was so busy that requests which wait may have been forgotten meanwhile, the test is
// begun anew.
func (f *Fixture) counts(found bool) {
	f.t.Helper()
	first := f.waits.Load()
	slowly := first != 0 && time.Now().UnixNano()-first > int64(locks.WaiterLife*2/3)
	if !found && slowly && f.again > 0 {
		panic(slow{})
	}
}

// slow is what a test panics with that is to be begun anew.
type slow struct{}

// patient has a test begin anew, with other names, when the machine was too slow for it. The last
// time counts, whatever was slow.
func patient(test Test) Test {
	run := test.Run
	test.Run = func(t *testing.T, f *Fixture) {
		for f.again = 10; attempt(t, f, run); f.again-- {
			t.Log("the machine is slow: requests that wait were forgotten, once more")
			f.Tenant = "tenant-" + ID()
			f.waits.Store(0)
		}
	}
	return test
}

// attempt says whether the test is to be begun anew.
func attempt(t *testing.T, f *Fixture, run func(t *testing.T, f *Fixture)) (again bool) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil: // it is done, or has failed
		case slow:
			again = true
		default:
			panic(r)
		}
	}()
	run(t, f)
	return false
}

// fails takes one step and expects that the request is refused with an error.
func (f *Fixture) fails(s locks.Store, key string, q locks.Request, want error) {
	f.t.Helper()
	require.ErrorIs(f.t, f.try(s, key, q).Answers[0].Err, want)
}

func (f *Fixture) release(s locks.Store, key string, q locks.Request) {
	f.t.Helper()
	ok, err := s.Release(f.t.Context(), f.name(key), locks.Ref{ID: q.ID}, nil)
	require.NoError(f.t, err)
	f.counts(ok)
	require.True(f.t, ok)
}

func (f *Fixture) renew(s locks.Store, r ...locks.Renewal) []locks.RenewResult {
	f.t.Helper()
	results, err := s.Renew(f.t.Context(), r)
	require.NoError(f.t, err)
	require.Len(f.t, results, len(r))
	return results
}

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
