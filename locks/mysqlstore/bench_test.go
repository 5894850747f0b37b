package mysqlstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// BenchmarkUncontended is a mutex, and a permit, taken and given back by one process.
func BenchmarkUncontended(b *testing.B) {
	s := opened(b, servers.MariaDB(b, "--innodb-flush-log-at-trx-commit=1").URL)
	for _, kind := range []locks.Kind{locks.Mutex, locks.Semaphore} {
		b.Run(kind.String(), func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				id, began := lockstest.ID(), time.Now()
				a := take(b, s, kind.String(), locks.Request{ID: id, Version: id, Kind: kind, Size: 3, Lease: time.Minute})
				require.True(b, a[0].Granted)
				_, err := s.Release(b.Context(), name(kind.String()), locks.Ref{ID: id}, nil)
				require.NoError(b, err)
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkRenew is one round for ten thousand leases.
func BenchmarkRenew(b *testing.B) {
	s := opened(b, servers.MariaDB(b).URL)
	renewals := make([]locks.Renewal, 10_000)
	for i := range renewals {
		id, key := lockstest.ID(), fmt.Sprint("key/", i)
		renewals[i] = locks.Renewal{Name: name(key), Ref: locks.Ref{ID: id}, Lease: time.Hour}
		take(b, s, key, locks.Request{ID: id, Version: id, Kind: locks.Mutex, Lease: time.Hour})
	}
	for b.Loop() {
		results, err := s.Renew(b.Context(), renewals)
		require.NoError(b, err)
		require.Equal(b, locks.Extended, results[len(results)-1].Verdict)
	}
}

// BenchmarkHandOff is from the release of one process to the hint of the next, and to its
// grant.
func BenchmarkHandOff(b *testing.B) {
	url := servers.MariaDB(b).URL
	sides := []*Store{opened(b, url), opened(b, url)}
	var hints []<-chan struct{}
	for _, s := range sides {
		h, stop := s.Listen(name("k"))
		defer stop()
		hints = append(hints, h)
	}
	last := lockstest.ID()
	take(b, sides[0], "k", request(last))
	var times []time.Duration
	for i := 1; b.Loop(); i++ {
		next, id := i%2, lockstest.ID()
		take(b, sides[next], "k", request(id))
		time.Sleep(10 * time.Millisecond)
		began := time.Now()
		_, err := sides[1-next].Release(b.Context(), name("k"), locks.Ref{ID: last}, nil)
		require.NoError(b, err)
		for granted := false; !granted; {
			select {
			case <-hints[next]:
			case <-time.After(time.Second):
			}
			granted = take(b, sides[next], "k", request(id))[0].Granted
		}
		times, last = append(times, time.Since(began)), id
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}
