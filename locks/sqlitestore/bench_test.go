package sqlitestore

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest"
)

// BenchmarkUncontended is a mutex taken and given back by one process.
func BenchmarkUncontended(b *testing.B) {
	s := opened(b, filepath.Join(b.TempDir(), "locks.db"))
	name := locks.Name{Tenant: "bench", Key: "k"}
	var times []time.Duration
	for b.Loop() {
		id, began := lockstest.ID(), time.Now()
		turn, err := s.Acquire(b.Context(), name, []locks.Request{{ID: id, Version: id, Kind: locks.Mutex, Lease: time.Minute}})
		require.NoError(b, err)
		require.True(b, turn.Answers[0].Granted)
		_, err = s.Release(b.Context(), name, locks.Ref{ID: id}, nil)
		require.NoError(b, err)
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkRenew is one round for ten thousand leases.
func BenchmarkRenew(b *testing.B) {
	s := opened(b, filepath.Join(b.TempDir(), "locks.db"))
	renewals := make([]locks.Renewal, 10_000)
	for i := range renewals {
		id := lockstest.ID()
		renewals[i] = locks.Renewal{Name: locks.Name{Tenant: "bench", Key: fmt.Sprint("key/", i)}, Ref: locks.Ref{ID: id}, Lease: time.Hour}
		_, err := s.Acquire(b.Context(), renewals[i].Name, []locks.Request{{ID: id, Version: id, Kind: locks.Mutex, Lease: time.Hour}})
		require.NoError(b, err)
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
	path := filepath.Join(b.TempDir(), "locks.db")
	sides := []*Store{opened(b, path), opened(b, path)}
	var hints []<-chan struct{}
	for _, s := range sides {
		h, stop := s.Listen(locks.Name{Tenant: "t", Key: "k"})
		defer stop()
		hints = append(hints, h)
	}
	last := lockstest.ID()
	grab(b, sides[0], last)
	var times []time.Duration
	for i := 1; b.Loop(); i++ {
		next, id := i%2, lockstest.ID()
		grab(b, sides[next], id)
		time.Sleep(10 * time.Millisecond)
		began := time.Now()
		_, err := sides[1-next].Release(b.Context(), locks.Name{Tenant: "t", Key: "k"}, locks.Ref{ID: last}, nil)
		require.NoError(b, err)
		for granted := false; !granted; {
			select {
			case <-hints[next]:
			case <-time.After(time.Second):
			}
			granted = grab(b, sides[next], id)
		}
		times, last = append(times, time.Since(began)), id
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}

func grab(b *testing.B, s *Store, id string) bool {
	turn, err := s.Acquire(b.Context(), locks.Name{Tenant: "t", Key: "k"}, []locks.Request{request(id)})
	require.NoError(b, err)
	return turn.Answers[0].Granted
}
