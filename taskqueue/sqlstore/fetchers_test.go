//go:build unix

package sqlstore

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// Many fetchers of two processes claim and settle at the same time, beside enqueues with unique
// keys: each task is claimed once, and a limit of the queue holds.
func TestManyFetchersGetEachTaskOnce(t *testing.T) {
	path, url := filepath.Join(t.TempDir(), "tasks.db"), emptyDatabase(t)
	for name, open := range map[string]func() (*Store, error){
		"sqlite":   func() (*Store, error) { return OpenFile(t.Context(), path) },
		"postgres": func() (*Store, error) { return New(t.Context(), poolOf(t, url)) },
	} {
		for _, limit := range []int{0, 7} {
			t.Run(fmt.Sprint(name, " limit ", limit), func(t *testing.T) {
				f := &fetchers{T: t, queue: fmt.Sprint("q", limit), seen: map[string]int{}, limit: limit}
				for range 2 {
					s, err := open()
					require.NoError(t, err)
					defer func() { require.NoError(t, s.Close()) }()
					f.stores = append(f.stores, s)
				}
				configure(t, f.stores[0], f.queue, taskqueue.Settings{Concurrency: limit})
				f.run(400)
				faults, err := f.stores[1].Audit(t.Context(), f.queue)
				require.NoError(t, err)
				assert.Empty(t, faults)
			})
		}
	}
}

type fetchers struct {
	*testing.T
	stores []*Store
	queue  string
	limit  int

	mu      sync.Mutex
	seen    map[string]int // by id: how often it was claimed
	running int
}

func (f *fetchers) run(n int) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for at := i; at < n; at += 8 {
				one := newTask(fmt.Sprint(at))
				one.UniqueKey = fmt.Sprint("key ", at%50, " ", at/50)
				_, err := f.stores[i%2].Enqueue(f.Context(), f.queue, []taskqueue.Task{one})
				assert.NoError(f, err)
			}
		})
		all.Go(func() {
			for nonce := 0; !f.Failed() && f.fetch(f.stores[i%2], fmt.Sprint("w", i), nonce, n); nonce++ {
			}
		})
	}
	all.Wait()
	assert.Len(f, f.seen, n)
	for id, times := range f.seen {
		assert.Equal(f, 1, times, id)
	}
}

// fetch claims some tasks and settles them. It reports false when all have been seen.
func (f *fetchers) fetch(s *Store, worker string, nonce, n int) bool {
	got, err := s.Claim(f.Context(), store.ClaimRequest{Queue: f.queue, Worker: worker, Nonce: fmt.Sprint(nonce), Max: 5, Lease: time.Hour})
	if !assert.NoError(f, err) {
		return false
	}
	f.mu.Lock()
	f.running += len(got.Tasks)
	if f.limit > 0 {
		assert.LessOrEqual(f, f.running, f.limit)
	}
	var all []store.Outcome
	for _, run := range got.Tasks {
		f.seen[run.ID]++
		all = append(all, store.Outcome{Ref: store.Ref{ID: run.ID, Token: run.Token}, Kind: store.Succeeded})
	}
	more := len(f.seen) < n
	f.mu.Unlock()
	if len(all) == 0 {
		return more
	}
	f.mu.Lock()
	f.running -= len(all) // before: when it is settled another may have the place at once
	f.mu.Unlock()
	results, err := s.Settle(f.Context(), f.queue, all)
	assert.NoError(f, err)
	for _, r := range results {
		assert.Equal(f, store.Settled, r)
	}
	return more
}
