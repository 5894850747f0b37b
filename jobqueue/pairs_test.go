package jobqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/internal/bridge"
)

// These tests let every pair of options meet every pair of calls, on goroutines
// of their own, and then look whether the queue is as a queue has to be.

var errPair = errors.New("pair")

// A pairJob is a job by its key; text tells jobs of one key apart.
type pairJob struct{ key, text int }

// A meeting is one queue and what has been seen of it.
type meeting struct {
	t    *testing.T
	q    *Queue[int, pairJob]
	root context.Context // of its own: a Goexit has nobody to be told to

	mu       sync.Mutex
	held     map[int]int // by key: how many hold it
	accepted int         // calls that have said that a job was added
	dead     int
	events   map[EventKind]int
}

var pairOptions = []struct {
	name string
	make func(m *meeting) Option
}{
	{"none", nil},
	{"RunAgain", func(*meeting) Option { return WhileRunning(RunAgain) }},
	{"MaxAttempts", func(m *meeting) Option {
		return MaxAttempts(2, func(pairJob, error) { m.mu.Lock(); m.dead++; m.mu.Unlock(); m.q.Len() })
	}},
	{"RetryDelay", func(m *meeting) Option {
		return RetryDelay(func(n int) time.Duration { m.q.Len(); return time.Duration(n%3) * time.Millisecond })
	}},
	{"a RetryDelay that panics", func(m *meeting) Option {
		return RetryDelay(func(n int) time.Duration {
			if n == 2 {
				panic(errPair)
			}
			return time.Millisecond
		})
	}},
	{"Capacity", func(*meeting) Option { return Capacity(3) }},
	{"Priority", func(*meeting) Option { return Priority(func(j pairJob) int { return j.text%3 - 1 }) }},
	{"Observe", func(m *meeting) Option {
		return Observe(func(e Event[pairJob]) { m.q.Len(); m.mu.Lock(); m.events[e.Kind]++; m.mu.Unlock() })
	}},
}

// checkStats checks what holds of a queue at any time.
func checkStats[K comparable, T any](t *testing.T, q *Queue[K, T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	again := 0
	for _, n := range q.core.nodes.m {
		if n.again != nil {
			again++
		}
		assert.Equal(t, n.state == taken, n.holder != nil)
	}
	s := q.core.stats
	assert.Equal(t, s.Added, s.Done+s.Dead+s.Removed+s.Replaced+uint64(q.core.queued()+q.core.taken+again))
	assert.Equal(t, s.Taken, s.Done+s.Dead+s.Returned+uint64(q.core.taken))
	assert.False(t, q.core.pending(), "a waiter was not served")
}

// run has the two calls meet, three times each, beside a producer; then it ends
// the queue, and looks.
func (m *meeting) run(seed uint64, calls ...func(*meeting, *rand.Rand)) {
	var all sync.WaitGroup
	for i, call := range append(calls, pairCalls[0].call) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 3 {
				call(m, r)
				runtime.Gosched()
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	checkStats(m.t, m.q)
	m.q.Close()
	all.Wait()
	synctest.Wait()
	checkStats(m.t, m.q)
	m.checkNothingLeft()
}

func (m *meeting) checkNothingLeft() {
	q := m.q
	q.mu.Lock()
	defer q.mu.Unlock()
	assert.Zero(m.t, q.core.taken)
	assert.Nil(m.t, q.holders.last)
	assert.Empty(m.t, q.holders.others.m)
	assert.Zero(m.t, q.failing.jobs.len)
	assert.Empty(m.t, q.drains)
	assert.Nil(m.t, q.core.waiters.first)
	assert.False(m.t, q.armed)
	for h := q.holders.free; h != nil; h = h.next {
		assert.Zero(m.t, h.jobs)
		assert.Zero(m.t, h.waits)
		assert.False(m.t, h.kept)
		assert.Nil(m.t, h.scope)
	}
	s := q.core.stats
	if q.dead != nil {
		assert.EqualValues(m.t, s.Dead, m.dead)
	}
	if !q.core.again {
		assert.EqualValues(m.t, s.Added, m.accepted)
	}
	if q.observer != nil {
		got := []int{m.events[Added], m.events[Taken], m.events[Done], m.events[Failed] + m.events[Stopped], m.events[Dead], m.events[Removed]}
		want := []int{m.accepted, int(s.Taken), int(s.Done), int(s.Returned), int(s.Dead), int(s.Removed)}
		assert.Equal(m.t, want, got)
	}
}

func TestEveryPairOfOptionsAndCalls(t *testing.T) {
	seed := uint64(0)
	for i, first := range pairOptions {
		for _, second := range pairOptions[i:] {
			for j, a := range pairCalls {
				for _, b := range pairCalls[j:] {
					seed++
					synctest.Test(t, func(t *testing.T) {
						m := &meeting{t: t, held: make(map[int]int), events: make(map[EventKind]int)}
						m.root = bridge.NewRoot(t.Context(), func(error) {}, func(string) {})
						var opts []Option
						if first.make != nil {
							opts = append(opts, first.make(m))
						}
						if second.make != nil {
							opts = append(opts, second.make(m))
						}
						m.q = NewKeyed(func(j pairJob) int { return j.key }, opts...)
						m.run(seed, a.call, b.call)
					})
					require.False(t, t.Failed(), fmt.Sprint(first.name, ", ", second.name, ": ", a.name, ", ", b.name))
				}
			}
		}
	}
}
