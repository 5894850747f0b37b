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
