package locks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/locks"
	_ "github.com/ambit-go/ambit/locks/dynamostore"
	_ "github.com/ambit-go/ambit/locks/etcdstore"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
	"github.com/ambit-go/ambit/locks/memstore"

	_ "github.com/ambit-go/ambit/locks/mysqlstore"
	_ "github.com/ambit-go/ambit/locks/pgstore"
	_ "github.com/ambit-go/ambit/locks/redisstore"
	_ "github.com/ambit-go/ambit/locks/sqlitestore"
)

func percentile(all []time.Duration, p int) time.Duration {
	slices.Sort(all)
	return all[(len(all)-1)*p/100]
}

// everysec are the settings of Redis under which libraries are compared most often.
var everysec = []string{"--appendfsync", "everysec"}

func sqliteURL(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "locks.db") }

// A side is a server, this project on it, and the libraries beside it.
type side struct {
	ours  library
	peers []library
}

func sides(t *testing.T) map[string]side {
	// 64 processes want more than the 100 connections that PostgreSQL allows by default, and the 151 of MariaDB.
	r, p, m := servers.Redis(t, everysec...), servers.Postgres(t, "-c", "max_connections=500"), servers.MariaDB(t, "--max-connections=500")
	e := servers.Etcd(t, "--heartbeat-interval", "100") // it waits for its disk
	return map[string]side{
		"sqlite":   {ours(t, "ambit on SQLite", opener(t, sqliteURL(t))), nil},
		"redis":    {ours(t, "ambit on Redis", opener(t, r.URL)), redisPeers(t, r)},
		"postgres": {ours(t, "ambit on PostgreSQL", opener(t, p.URL)), []library{byHand(t, p.URL)}},
		"mysql":    {ours(t, "ambit on MariaDB", opener(t, m.URL)), nil},
		"etcd":     {ours(t, "ambit on etcd", opener(t, e.URL)), etcdPeer(t, e)},
	}
}

var order = []string{"sqlite", "redis", "postgres", "mysql", "etcd"}

// TestUncontended is L1, L2 and L3: a lock that nobody else wants is taken and given back.
// Libraries on one server take turns.
func TestUncontended(t *testing.T) {
	all := sides(t)
	row("take and give back, nobody else", "p50", "p99", "of ours")
	for _, name := range order {
		s := all[name]
		libs := s.peers
		if s.ours.make != nil {
			libs = append([]library{s.ours}, libs...)
		}
		var runs []func() float64
		for _, l := range libs {
			take := l.make()
			runs = append(runs, func() float64 {
				begin := time.Now()
				release, err := take(t.Context(), "alone")
				require.NoError(t, err)
				release()
				return float64(time.Since(begin))
			})
		}
		measure.Turns(50, runs...)
		samples := measure.Turns(950, runs...)
		for i, l := range libs {
			took := durations(samples[i])
			row(l.name, percentile(took, 50), percentile(took, 99), fmt.Sprintf("%.2f", samples[i].Median()/samples[0].Median()))
		}
		tellUncontended(libs, samples)
	}
}

// patience is how long one wait for a peer may last. One that forgets to wake a waiter would have it wait for ever.
const patience = 20 * time.Second

// contend has workers, each with a taker of its own, take a lock in turns and hold it for
// 2 ms. It returns how long they waited, of which some gave up after their patience, and how long a turn took in all.
func contend(t *testing.T, l library, workers, rounds int) (waits []time.Duration, gaveUp int, turn time.Duration) {
	const hold = 2 * time.Millisecond
	takers := make([]taker, workers)
	for i := range takers {
		takers[i] = l.make()
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	begin := time.Now()
	for _, take := range takers {
		wg.Go(func() {
			for n := range rounds {
				asked := time.Now()
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				peer := !strings.HasPrefix(l.name, "ambit")
				if peer {
					ctx, cancel = context.WithTimeout(ctx, patience)
				}
				release, err := take(ctx, fmt.Sprint("contended-", workers))
				waited := time.Since(asked)
				late := peer && errors.Is(err, context.DeadlineExceeded)
				switch {
				case err == nil:
					time.Sleep(hold)
					release()
				case !late:
					t.Errorf("%s: %v", l.name, err)
					cancel()
					return
				}
				cancel()
				mu.Lock()
				if n > 0 {
					waits = append(waits, waited)
				}
				if late {
					gaveUp++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return waits, gaveUp, time.Since(begin) / time.Duration(workers*rounds)
}

// TestContended is the contended table of the contract, and L5: each worker has a handle
// of its own, as a process has.
func TestContended(t *testing.T) {
	all := sides(t)
	for _, c := range []struct{ workers, rounds int }{{8, 25}, {64, 4}} {
		row(fmt.Sprintf("wait among %d who hold it for 2 ms", c.workers), "p50", "p99", "p99/p50", "a turn")
		for _, name := range order {
			s := all[name]
			libs := s.peers
			if s.ours.make != nil {
				libs = append([]library{s.ours}, libs...)
			}
			for _, l := range libs {
				if c.workers > 8 && l.name != s.ours.name && name != "etcd" {
					continue // minutes
				}
				waits, gaveUp, turn := contend(t, l, c.workers, c.rounds)
				p50, p99 := percentile(waits, 50), percentile(waits, 99)
				row(l.name, p50, p99, fmt.Sprintf("%.2f", float64(p99)/float64(p50)), turn)
				who := l.name
				if gaveUp > 0 {
					who += fmt.Sprintf(" (%d of %d gave up after %v)", gaveUp, len(waits)+c.workers, patience)
				}
				tellWaits(who, fmt.Sprintf("%d who hold it for 2 ms", c.workers), l.name == s.ours.name, p50, p99)
			}
		}
	}
}

// TestAThousandWaiters is the rest of L5: a thousand tasks of one process want one lock, all
// the time, and hold it for nothing.
func TestAThousandWaiters(t *testing.T) {
	stores := []struct {
		name string
		open func() locks.Store
	}{
		{"memory", func() locks.Store { return memstore.New() }},
		{"Redis", opener(t, servers.Redis(t, everysec...).URL)},
		{"PostgreSQL", opener(t, servers.Postgres(t).URL)},
	}
	row("wait among 1,000 of one process", "p50", "p99", "p99/p50", "a turn")
	for _, s := range stores {
		m := manager(t, s.open(), locks.Lease(time.Minute))
		var mu sync.Mutex
		var waits []time.Duration
		var wg sync.WaitGroup
		begin := time.Now()
		for range 1000 {
			wg.Go(func() {
				for n := range 3 {
					asked := time.Now()
					h, err := m.Acquire(t.Context(), "thousand")
					if err != nil {
						t.Error(err)
						return
					}
					waited := time.Since(asked)
					_ = h.Release(t.Context())
					if n == 1 { // a full queue before and behind it
						mu.Lock()
						waits = append(waits, waited)
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		p50, p99 := percentile(waits, 50), percentile(waits, 99)
		row(s.name, p50, p99, fmt.Sprintf("%.2f", float64(p99)/float64(p50)), time.Since(begin)/3000)
		tellWaits("ambit on "+s.name, "1,000 tasks of one process", true, p50, p99)
	}
}

// TestHandOff is L4: from the release of one handle to the grant of another that waits.
func TestHandOff(t *testing.T) {
	all := sides(t)
	row("from a release to the grant of the next", "p50", "p99")
	for _, name := range order {
		l := all[name].ours
		if l.make == nil {
			continue
		}
		a, b := l.make(), l.make()
		var took []time.Duration
		for range 100 {
			release, err := a(t.Context(), "hand-off")
			require.NoError(t, err)
			granted := make(chan time.Time)
			go func() {
				release, err := b(t.Context(), "hand-off")
				if err != nil {
					t.Error(err)
					close(granted)
					return
				}
				granted <- time.Now()
				release()
				close(granted)
			}()
			time.Sleep(5 * time.Millisecond) // it waits by now
			begin := time.Now()
			release()
			took = append(took, (<-granted).Sub(begin))
			<-granted
		}
		row(l.name, percentile(took, 50), percentile(took, 99))
		tell(measure.Row{ID: "L4", What: "from a release to the grant of the next, " + l.name, Unit: "ms", Ours: millis(took), Budget: handOffs[name]})
	}
}

// TestRecovery is L6: a holder is heard of no more, as one that was killed, and another
// waits.
func TestRecovery(t *testing.T) {
	const lease = 2 * time.Second
	for name, url := range map[string]string{
		"Redis": servers.Redis(t, everysec...).URL, "PostgreSQL": servers.Postgres(t).URL, "etcd": servers.Etcd(t, "--heartbeat-interval", "100").URL,
	} {
		open := opener(t, url)
		var late []time.Duration
		for n := range 5 {
			key := fmt.Sprint("recovery-", n)
			dead := open()
			_, err := manager(t, dead).Acquire(t.Context(), key, locks.LeaseFor(lease), locks.NoRenew())
			require.NoError(t, err)
			granted := time.Now()
			require.NoError(t, dead.Close()) // on etcd a process that lives ends what it does not renew
			h, err := manager(t, open()).Acquire(t.Context(), key)
			require.NoError(t, err)
			late = append(late, time.Since(granted)-lease)
			require.NoError(t, h.Release(t.Context()))
		}
		row("granted so long after the lease of the dead: "+name, slices.Max(late))
		b := measure.Budget{}
		if name != "etcd" {
			b = measure.AtMost(100)
		}
		tell(measure.Row{ID: "L6", What: "granted so long after the lease of the dead, " + name, Unit: "ms", Ours: millis(late), Budget: b})
	}
}

// TestRenewal is L7: a round of renewals of 10,000 locks.
func TestRenewal(t *testing.T) {
	const n = 10_000
	row("10,000 leases are renewed in", "median of 5")
	for _, s := range []struct{ name, url string }{
		{"memory", "mem:"}, {"SQLite", sqliteURL(t)}, {"Redis", servers.Redis(t, everysec...).URL}, {"PostgreSQL", servers.Postgres(t).URL}, {"MariaDB", servers.MariaDB(t).URL},
		{"etcd", servers.Etcd(t).URL},
	} {
		store := opener(t, s.url)()
		renewals := make([]locks.Renewal, n)
		var next atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
					name := locks.Name{Tenant: "t", Key: fmt.Sprint("renew-", i)}
					id := fmt.Sprintf("%032d", i)
					_, err := store.Acquire(t.Context(), name, []locks.Request{{ID: id, Version: id, Kind: locks.Mutex, Lease: time.Hour}})
					if err != nil {
						t.Error(err)
						return
					}
					renewals[i] = locks.Renewal{Name: name, Ref: locks.Ref{ID: id}, Lease: time.Hour}
				}
			})
		}
		wg.Wait()
		var took []time.Duration
		for range 5 {
			begin := time.Now()
			results, err := store.Renew(t.Context(), renewals)
			require.NoError(t, err)
			took = append(took, time.Since(begin))
			for _, r := range results {
				require.Equal(t, locks.Extended, r.Verdict)
			}
		}
		row(s.name, percentile(took, 50))
		tell(measure.Row{ID: "L7", What: "10,000 leases are renewed, " + s.name, Unit: "ms", Ours: millis(took), Budget: measure.AtMost(150)})
	}
}

// counted counts the steps of a store.
type counted struct {
	locks.Store
	n *atomic.Int64
}

func (c counted) Acquire(ctx context.Context, name locks.Name, q []locks.Request) (locks.Turn, error) {
	c.n.Add(1)
	return c.Store.Acquire(ctx, name, q)
}

// TestIdle is L8: twenty tasks of a process wait for a lock that another process has.
func TestIdle(t *testing.T) {
	const seconds = 10
	server := servers.Redis(t, everysec...)
	open := opener(t, server.URL)
	h, err := manager(t, open()).Acquire(t.Context(), "idle", locks.LeaseFor(time.Hour))
	require.NoError(t, err)
	var n atomic.Int64
	m := manager(t, counted{open(), &n})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _, _ = m.Acquire(ctx, "idle") })
	}
	time.Sleep(3 * time.Second)
	n.Store(0)
	client := redis.NewClient(&redis.Options{Addr: server.Address})
	before, err := client.Info(ctx, "commandstats").Result()
	require.NoError(t, err)
	time.Sleep(seconds * time.Second)
	after, err := client.Info(ctx, "commandstats").Result()
	require.NoError(t, err)
	row("twenty wait: steps a second and key", fmt.Sprintf("%.2f", float64(n.Load())/seconds))
	tell(measure.Row{ID: "L8", What: "twenty wait for a key, steps of the process", Unit: "/s", Ours: measure.Sample{float64(n.Load()) / seconds}, Budget: measure.AtMost(1)})
	row("EVALSHA a second at the server", fmt.Sprintf("%.2f", float64(calls(after, "evalsha")-calls(before, "evalsha"))/seconds))
	cancel()
	wg.Wait()
	require.NoError(t, h.Release(t.Context()))
	require.NoError(t, client.Close())
}

// calls finds how often a command was called.
func calls(stats, command string) (n int) {
	for line := range strings.Lines(stats) {
		if _, err := fmt.Sscanf(line, "cmdstat_"+command+":calls=%d", &n); err == nil {
			return n
		}
	}
	return 0
}
