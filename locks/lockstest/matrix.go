package lockstest

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// A Target is a store for the matrix of faults.
type Target struct {
	// Start starts a server of its own, and says how a store is opened on it. Server is nil
	// where there is none, and the URL is of a file.
	Start func(t testing.TB) (server *servers.Server, url string)
	// Via is the URL of a store whose server is reached at another address. Nil where there
	// is no network.
	Via func(server *servers.Server, address string) (url string)
	// OwnClock says that the store does not look at the clock of the system, or that it is the
	// clock of this machine: it cannot be set for a test.
	OwnClock bool
	// Lease is that of all locks.
	Lease time.Duration
}

// A rowRun is one row of the matrix while it runs: some processes that take one lock
// again and again, and what is done to them.
type rowRun struct {
	t        *testing.T
	target   *Target
	server   *servers.Server
	proxy    *Proxy // nil without a network
	url      string
	journal  history
	config   childConfig
	children []*process
}

// A row is one fault.
type row struct {
	name    string
	network bool // it needs one
	server  bool // it needs a server of its own
	clock   bool // whose clock can be set
	alone   bool // it begins with one process, not with three
	early   bool // leases may end early: two may believe at a time, and only tokens count
	config  func(c *childConfig)
	fault   func(r *rowRun)
}

// Matrix runs processes that take one lock of a store again and again, does to them, to
// the server and to the network what may happen, and checks the history that they wrote:
// no two ever believe to have the same permit, no token is given twice, whoever lost the
// lock is told, and when all is well again everybody who lives gets the lock again. The
// package's TestMain calls [Main] first. Rows run beside each other, 12 at a time, and
// beside other parallel tests: most of their time is waiting.
func Matrix(t *testing.T, target Target) {
	t.Parallel()
	shared, url := target.Start(t)
	places := make(chan struct{}, 12)
	var all sync.WaitGroup
	defer all.Wait()
	for _, row := range rows() {
		if row.network && target.Via == nil || row.server && shared == nil || row.clock && target.OwnClock {
			continue
		}
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(row.name, func(t *testing.T) { newRow(t, &target, shared, url, row).run(row) })
		})
	}
}

func newRow(t *testing.T, target *Target, shared *servers.Server, url string, row row) *rowRun {
	r := &rowRun{t: t, target: target, server: shared, url: url, journal: history{path: filepath.Join(t.TempDir(), "history")}}
	if row.server {
		r.server, r.url = target.Start(t)
	}
	if row.clock {
		r.server.FakeClock()
	}
	if row.network {
		r.proxy = NewProxy(t, r.server.Network, r.server.Address)
		r.url = target.Via(r.server, r.proxy.Address)
	}
	r.config = childConfig{URL: r.url, Journal: r.journal.path, Tenant: "matrix-" + ID(), Key: "the lock", Lease: target.Lease, Hold: target.Lease / 20}
	if row.config != nil {
		row.config(&r.config)
	}
	return r
}

// run starts the processes, has the fault happen, and checks what came of it.
func (r *rowRun) run(row row) {
	n := 3 + r.config.Size
	if row.alone {
		n = 1
	}
	for range n {
		r.start()
	}
	r.everybody(0, Granted)
	for range number(r.t, "LOCKS_MATRIX", 1) { // so often each fault happens
		row.fault(r)
		r.everybody(Now(), Granted) // all is well again
	}
	r.end()
	r.check(row.early)
}

func (r *rowRun) check(early bool) {
	r.t.Helper()
	events := r.events()
	if early {
		events = without(events, Acts, Lives, Returned)
	}
	for i, fault := range Check(events) {
		if i == 5 {
			break
		}
		r.t.Error(fault)
	}
	r.t.Logf("%d events, %d grants, %d losses told", len(events), len(events)-len(without(events, Granted)), Lost(events))
}

// Overlaps has [Peer] do what [Matrix] has this package do when the network goes silent
// for the holder alone, and returns what the check says of its history: it shows that the
// check sees two who believe at the same time that they have the lock. A machine that is
// busy may give the lock to nobody while the first still believes; then it is done again.
func Overlaps(t *testing.T, target Target) []string {
	server, url := target.Start(t)
	for end := Now() + 10*time.Minute; Now() < end; {
		r := newRow(t, &target, server, url, row{network: true, config: func(c *childConfig) {
			c.Peer, c.Hold = true, time.Hour // another may be unfair, and the first not get it again
		}})
		r.start()
		granted := func(events []Event) bool { return len(Count(events, Granted, 0)) > 0 }
		if !r.soon(30*time.Second, granted) { // another may wait for a word that was lost
			r.kill()
			continue
		}
		r.addTwo()
		silent := Now()
		r.proxy.Silence()
		granted = func(events []Event) bool {
			counts := Count(events, Granted, silent)
			return counts[r.children[1].name]+counts[r.children[2].name] > 0
		}
		if !r.soon(time.Minute, granted) {
			r.kill()
			continue
		}
		r.proxy.Heal()
		r.end()
		if faults := Check(r.events()); len(faults) > 0 {
			return faults
		}
	}
	return nil
}

// addTwo starts processes with a network of their own, which is not broken.
func (r *rowRun) addTwo() {
	r.t.Helper()
	r.config.URL = r.target.Via(r.server, NewProxy(r.t, r.server.Network, r.server.Address).Address)
	r.config.Hold = r.config.Lease / 20
	for len(r.children) < 3 {
		r.start()
		r.everybody(0, Ready)
	}
}

func without(events []Event, kinds ...string) []Event {
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return slices.Contains(kinds, e.Kind) })
}

// events reads the history so far.
func (r *rowRun) events() []Event {
	r.t.Helper()
	events, err := r.journal.read()
	require.NoError(r.t, err)
	return events
}

// patience is how long the matrix waits for what has to happen at last.
const patience = 4 * time.Minute

// until waits for something of the history.
func (r *rowRun) until(what string, f func(events []Event) bool) {
	r.t.Helper()
	if !r.soon(patience, f) {
		require.FailNow(r.t, "this did not happen: "+what, "%v", tail(r.events()))
	}
}

// soon waits for something of the history no longer than a time, and reports whether it came.
func (r *rowRun) soon(within time.Duration, f func(events []Event) bool) bool {
	r.t.Helper()
	for end := Now() + within; ; time.Sleep(20 * time.Millisecond) {
		if f(r.events()) {
			return true
		}
		if Now() > end {
			return false
		}
	}
}

func tail(events []Event) (text string) {
	for _, e := range events[max(0, len(events)-30):] {
		text += fmt.Sprintf("%v %s %s %d %s\n", e.At, e.Client, e.Kind, e.Token, e.Text)
	}
	return text
}

// everybody waits until each process that lives has written such an event since.
func (r *rowRun) everybody(since time.Duration, kind string) {
	r.t.Helper()
	r.until("everybody "+kind, func(events []Event) bool {
		counts := Count(events, kind, since)
		for _, p := range r.children {
			if !p.gone && counts[p.name] == 0 {
				return false
			}
		}
		return true
	})
}

// holder waits for a process that has the lock just now, as far as can be seen.
func (r *rowRun) holder() (p *process) {
	r.t.Helper()
	r.until("somebody holds the lock", func([]Event) bool {
		since := Now()
		time.Sleep(4 * pace)
		for name := range Count(r.events(), Lives, since) {
			for _, c := range r.children {
				if c.name == name {
					p = c
				}
			}
		}
		return p != nil
	})
	return p
}

// waiter waits for a process that does not have the lock.
func (r *rowRun) waiter() *process {
	for {
		h := r.holder()
		for _, c := range r.children {
			if c != h && !c.gone {
				return c
			}
		}
	}
}
