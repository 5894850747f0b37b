package jobqueue

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests are of the queue as plain data: no lock, no goroutine, no clock.

func newCore(r rules) *core[int, int] {
	c := new(core[int, int])
	c.init(r)
	return c
}

// put adds a job that is its own key, ready at the time at.
func (c *core[K, T]) put(key K, job T, at, now time.Duration) error {
	err := c.refuses(key)
	if err == nil {
		c.add(key, job, 0, at, now)
	}
	return err
}

// Delayed jobs become ready in the order of their times, those of one time in
// the order of their adding, and behind what was added meanwhile.
func TestDelayedJobsRipenInOrderOfTime(t *testing.T) {
	c := newCore(rules{})
	for i, at := range []time.Duration{30, 10, 20, 10} {
		require.NoError(t, c.put(i, i, at, 0))
	}
	require.NoError(t, c.put(4, 4, 0, 0))
	c.makeDueReady(9)
	assert.Equal(t, 1, c.ready.len())
	c.makeDueReady(20)
	assert.Equal(t, 1, c.delayed.len())
	h := new(holder[int, int])
	var got []int
	for c.ready.len() > 0 {
		got = append(got, c.take(h, 20).job)
	}
	assert.Equal(t, []int{4, 1, 3, 2}, got)
}

// A job that has a place keeps it through a delay.
func TestAJobThatWaitsForARetryKeepsItsPlace(t *testing.T) {
	c := newCore(rules{})
	h := new(holder[int, int])
	require.NoError(t, c.put(1, 1, 0, 0))
	n := c.take(h, 0)
	require.NoError(t, c.put(2, 2, 0, 0))
	require.False(t, c.fail(n, 5, 1))
	assert.Equal(t, delayed, n.state)
	c.makeDueReady(5)
	assert.Same(t, n, c.take(h, 5))
}

// Who waited longest is served first, with as much as it may take; those for
// whom nothing is left wait on; who has left is passed over.
func TestWaitersAreServedInOrder(t *testing.T) {
	c := newCore(rules{})
	ws := make([]*waiter[int, int], 5)
	for i := range ws {
		ws[i] = &waiter[int, int]{limit: 2}
		c.wait(ws[i], new(holder[int, int]))
	}
	c.stopWaiting(ws[1])
	var woken waiters[int, int]
	c.stopWaitingAll(ws[2].holder, ErrNoScope, &woken)
	assert.Same(t, ws[2], woken.first)
	assert.Equal(t, ErrNoScope, ws[2].err)
	for i := range 3 {
		require.NoError(t, c.put(i, i, 0, 0))
	}
	woken = waiters[int, int]{}
	c.serve(0, &woken)
	require.Same(t, ws[0], woken.first)
	require.Same(t, ws[3], woken.first.next)
	assert.Nil(t, woken.first.next.next)
	assert.Len(t, ws[0].served, 2)
	assert.Len(t, ws[3].served, 1)
	assert.True(t, ws[4].listed)
	assert.False(t, c.pending())
	c.closed = true
	woken = waiters[int, int]{}
	c.serve(0, &woken)
	assert.Same(t, ws[4], woken.first)
	assert.Equal(t, ErrClosed, ws[4].err)
	assert.Zero(t, c.waiters)
}

// However many ask for a second run there is one, of the newest job, at the
// earliest time, at the end of the queue.
func TestOneRerunOfTheNewest(t *testing.T) {
	c := newCore(rules{again: true})
	h := new(holder[int, int])
	require.NoError(t, c.put(1, 10, 0, 0))
	assert.Equal(t, ErrDuplicate, c.put(1, 11, 0, 0), "it is only queued")
	n := c.take(h, 0)
	require.NoError(t, c.put(1, 12, 7, 0))
	require.NoError(t, c.put(1, 13, 0, 0))
	require.NoError(t, c.put(1, 14, 9, 0))
	require.NoError(t, c.put(2, 20, 0, 0))
	c.done(n, 1)
	assert.Equal(t, ErrDuplicate, c.put(1, 15, 9, 1))
	assert.Equal(t, 20, c.take(h, 1).job)
	m := c.take(h, 1)
	assert.Equal(t, 14, m.job)
	assert.Equal(t, 1, m.runs)
	c.done(m, 1)
	assert.EqualValues(t, 3, c.stats.Added)
	assert.Nil(t, c.nodes.get(1))
}

// Capacity refuses what is added, not what comes back.
func TestCapacityDoesNotHoldForWhatComesBack(t *testing.T) {
	c := newCore(rules{capacity: 2})
	h := new(holder[int, int])
	require.NoError(t, c.put(1, 1, 0, 0))
	require.NoError(t, c.put(2, 2, 5, 0))
	assert.Equal(t, ErrFull, c.put(3, 3, 0, 0))
	n := c.take(h, 0)
	require.NoError(t, c.put(3, 3, 0, 0))
	c.stop(n, 0)
	assert.Equal(t, 3, c.queued())
	assert.Equal(t, ErrDuplicate, c.put(1, 1, 0, 0), "known before full")
	assert.Equal(t, ErrFull, c.put(4, 4, 0, 0))
	assert.EqualValues(t, 2, c.stats.Refused)
}

// After each step of anything, what came in is what went out and what is there.
func TestStatsAddUpAfterEachStep(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := newCore(rules{again: seed%2 == 0, attempts: int(seed % 3), capacity: int(seed % 7)})
		h := new(holder[int, int])
		for now := range time.Duration(500) {
			c.makeDueReady(now)
			switch op := r.IntN(9); {
			case op < 4:
				_ = c.put(r.IntN(10), 0, now+time.Duration(r.IntN(20)-10), now)
			case op == 4 && c.ready.len() > 0:
				c.take(h, now)
			case op == 5:
				c.remove(r.IntN(10))
			case op == 6 && h.jobs.len > 0:
				c.done(h.jobs.last, now)
			case op == 7 && h.jobs.len > 0:
				c.fail(h.jobs.first, now+time.Duration(r.IntN(10)), now)
			case op == 8 && h.jobs.len > 0:
				c.stop(h.jobs.first, now)
			}
			again := 0
			retries := 0
			for _, n := range c.nodes.m {
				if n.again != nil {
					require.Equal(t, taken, n.state)
					again++
				}
				if n.state == delayed && n.isRetry() {
					retries++
				}
			}
			require.Equal(t, retries, c.retries)
			s := c.stats
			require.Equal(t, s.Added, s.Done+s.Dead+s.Removed+s.Replaced+uint64(c.queued()+c.taken+again))
			require.Equal(t, s.Taken, s.Done+s.Dead+s.Returned+uint64(c.taken))
			require.Equal(t, c.taken, h.jobs.len)
			require.Len(t, c.nodes.m, c.queued()+c.taken)
		}
	}
}
