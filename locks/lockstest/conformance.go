// Package lockstest tests stores of package locks: what each step promises, what holds
// whatever happens to processes, servers and networks, and what tools find in the
// histories of random programs. Writers of a store of their own call [Run].
package lockstest

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
