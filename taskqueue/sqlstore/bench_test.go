//go:build unix

package sqlstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// measured is what the benchmarks run on: each opens an empty store.
func measured(b *testing.B, f func(b *testing.B, open func() *Store)) {
	b.Run("sqlite", func(b *testing.B) { f(b, func() *Store { return openTemp(b) }) })
	b.Run("postgres", func(b *testing.B) {
		n, url := 0, emptyDatabase(b)
		f(b, func() *Store {
			n++
			s, err := New(context.Background(), poolOf(b, url), Prefix(fmt.Sprintf("b%d_", n)))
			require.NoError(b, err)
			return s
		})
	})
}

var benchIDs atomic.Int64

func benchTask() taskqueue.Task {
	return taskqueue.Task{ID: fmt.Sprintf("%016x", benchIDs.Add(1)), Type: "t", MaxFailures: 3, MaxCrashes: 3, Payload: make([]byte, 100)}
}

// BenchmarkEnqueue is one task a call, by 64 goroutines.
func BenchmarkEnqueue(b *testing.B) {
	measured(b, func(b *testing.B, open func() *Store) {
		s := open()
		defer func() { require.NoError(b, s.Close()) }()
		b.ResetTimer()
		var all sync.WaitGroup
		var left atomic.Int64
		left.Store(int64(b.N))
		for range 64 {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					if _, err := s.Enqueue(context.Background(), "q", []taskqueue.Task{benchTask()}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	})
}

// BenchmarkRun is claiming and settling, 100 at a time, by one fetcher.
func BenchmarkRun(b *testing.B) {
	measured(b, func(b *testing.B, open func() *Store) {
		s := open()
		defer func() { require.NoError(b, s.Close()) }()
		fill(b, s, b.N, 0)
		b.ResetTimer()
		for n := 0; n < b.N; {
			got, err := s.Claim(context.Background(), store.ClaimRequest{Queue: "q", Worker: "w", Nonce: fmt.Sprint(n), Max: 100, Lease: time.Minute})
			require.NoError(b, err)
			var all []store.Outcome
			for _, t := range got.Tasks {
				all = append(all, store.Outcome{Ref: store.Ref{ID: t.ID, Token: t.Token}, Kind: store.Succeeded})
			}
			_, err = s.Settle(context.Background(), "q", all)
			require.NoError(b, err)
			n += len(all)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	})
}

func fill(t testing.TB, s *Store, n int, delay time.Duration) {
	for n > 0 {
		var tasks []taskqueue.Task
		for range min(n, 500) {
			one := benchTask()
			one.Delay = delay
			tasks = append(tasks, one)
		}
		_, err := s.Enqueue(context.Background(), "q", tasks)
		require.NoError(t, err)
		n -= len(tasks)
	}
}
