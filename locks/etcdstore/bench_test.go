package etcdstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
)

// BenchmarkTakeAndGiveBack has this package and the mutex of etcd take a lock that nobody else
// wants, in turns, on a server that waits for its disk.
func BenchmarkTakeAndGiveBack(b *testing.B) {
	server := servers.Etcd(b, "--heartbeat-interval", "100")
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Address}})
	require.NoError(b, err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(15))
	require.NoError(b, err)
	b.Cleanup(func() { _ = session.Close(); _ = client.Close() })
	theirs := concurrency.NewMutex(session, "/theirs")
	m, err := locks.New(store(b, server.URL))
	require.NoError(b, err)
	took := [2][]time.Duration{}
	one := func(i int, f func() error) {
		begin := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		took[i] = append(took[i], time.Since(begin))
	}
	for b.Loop() {
		one(0, func() error { return m.With(b.Context(), "ours", func(context.Context) error { return nil }) })
		one(1, func() error {
			if err := theirs.Lock(b.Context()); err != nil {
				return err
			}
			return theirs.Unlock(b.Context())
		})
	}
	for i := range took {
		slices.Sort(took[i])
	}
	middle := func(i int) time.Duration { return took[i][len(took[i])/2] }
	b.ReportMetric(float64(middle(0).Microseconds()), "µs-ours")
	b.ReportMetric(float64(middle(1).Microseconds()), "µs-theirs")
	b.ReportMetric(float64(middle(0))/float64(middle(1)), "of-theirs")
}

// BenchmarkRenewMany renews ten thousand locks.
func BenchmarkRenewMany(b *testing.B) {
	s := store(b, servers.Etcd(b).URL)
	renewals := make([]locks.Renewal, 10_000)
	for i := range renewals {
		name := locks.Name{Tenant: "t", Key: fmt.Sprint(i)}
		q := locks.Request{ID: fmt.Sprint("id", i), Version: "v", Owner: "o", Kind: locks.Mutex, Lease: time.Minute}
		_, err := s.Acquire(b.Context(), name, []locks.Request{q})
		require.NoError(b, err)
		renewals[i] = locks.Renewal{Name: name, Ref: locks.Ref{ID: q.ID}, Lease: time.Minute}
	}
	for b.Loop() {
		results, err := s.Renew(b.Context(), renewals)
		require.NoError(b, err)
		require.Equal(b, locks.Extended, results[9999].Verdict)
	}
}
