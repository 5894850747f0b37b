package locks_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/internal/book"
	"github.com/ambit-go/ambit/locks/internal/hint"
)

// A desk is a database with one lock. It tells the processes that have a request which can be
// granted, as the stores over databases do, and counts what it is asked.
type desk struct {
	mu        sync.Mutex
	r         book.Resource
	processes map[string]*process
	asked     int
	listened  int
}

// A process is the store as one process has it.
type process struct {
	locks.Store // what the test does not need
	desk        *desk
	id          string
	board       hint.Board[locks.Name]
}

func newDesk(n int) (*desk, []*locks.Manager) {
	d := &desk{processes: map[string]*process{}}
	var managers []*locks.Manager
	for i := range n {
		p := &process{desk: d, id: fmt.Sprint("process ", i)}
		d.processes[p.id] = p
		m, err := locks.New(p)
		if err != nil {
			panic(err)
		}
		managers = append(managers, m)
	}
	return d, managers
}

func (d *desk) step(f func(now int64)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := book.Micros(time.Now())
	f(now)
	for _, client := range d.r.Wake(now) {
		d.processes[client].board.HintAll()
	}
}

func (p *process) Acquire(_ context.Context, _ locks.Name, requests []locks.Request) (turn locks.Turn, err error) {
	p.desk.step(func(now int64) {
		p.desk.asked++
		turn = p.desk.r.Acquire(now, p.id, requests)
	})
	return turn, nil
}

func (p *process) Release(_ context.Context, _ locks.Name, ref locks.Ref, data *string) (ok bool, err error) {
	p.desk.step(func(now int64) { ok = p.desk.r.Release(now, ref, data) })
	return ok, nil
}

func (p *process) Listen(name locks.Name) (<-chan struct{}, func()) {
	p.desk.mu.Lock()
	defer p.desk.mu.Unlock()
	p.desk.listened++
	return p.board.Listen(name)
}

func (p *process) Traits() locks.Traits { return locks.Traits{MinLease: time.Second, Hints: true} }

// TestATurnCostsTheSameHoweverManyWait has processes take a lock in turns. One that comes back
// asks once to get into the queue and once when it is its turn, and nobody else asks anything.
func TestATurnCostsTheSameHoweverManyWait(t *testing.T) {
	for _, n := range []int{2, 8, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rounds = 10
				d, managers := newDesk(n)
				var wg sync.WaitGroup
				for _, m := range managers {
					wg.Go(func() {
						for range rounds {
							h, err := m.Acquire(t.Context(), "k")
							if !assert.NoError(t, err) {
								return
							}
							time.Sleep(time.Millisecond)
							assert.NoError(t, h.Release(t.Context()))
						}
					})
				}
				wg.Wait()
				first := n // who comes for the first time asks once more, and begins to listen
				assert.LessOrEqual(t, d.asked, 2*n*rounds+first)
				assert.LessOrEqual(t, d.listened, first)
			})
		})
	}
}

// TestAProcessListensForAWhileAndThenNoMore: what it costs to listen is not for ever.
func TestAProcessListensForAWhileAndThenNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, managers := newDesk(2)
		turns := func(n int) {
			for range n {
				h, err := managers[0].Acquire(t.Context(), "k")
				require.NoError(t, err)
				done := make(chan struct{})
				go func() {
					defer close(done)
					h, err := managers[1].Acquire(t.Context(), "k")
					assert.NoError(t, err)
					assert.NoError(t, h.Release(t.Context()))
				}()
				synctest.Wait()
				require.NoError(t, h.Release(t.Context()))
				<-done
				synctest.Wait()
			}
		}
		listening := func() (n int) {
			for _, p := range d.processes {
				n += p.board.Len()
			}
			return n
		}
		turns(5)
		assert.Equal(t, 1, d.listened)
		assert.Equal(t, 1, listening())
		time.Sleep(10 * time.Second)
		assert.Zero(t, listening())

		turns(1)
		assert.Equal(t, 1, listening())
		h, err := managers[1].Acquire(t.Context(), "k") // it is free: nobody waited, so it is not worth it any more
		require.NoError(t, err)
		synctest.Wait()
		assert.Zero(t, listening())
		require.NoError(t, h.Release(t.Context()))

		turns(1)
		assert.Equal(t, 1, listening())
		require.NoError(t, managers[1].Close())
		synctest.Wait()
		assert.Zero(t, listening(), "a manager that is closed listens for nothing")
	})
}
