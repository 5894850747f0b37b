package jobqueue

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// The calls that meet in pairs_test.go.

// hold notes that jobs were taken, and returns what notes that they are let go.
func (m *meeting) hold(jobs []pairJob) (letGo func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range jobs {
		m.held[j.key]++
		assert.Equal(m.t, 1, m.held[j.key], "job %d is in two hands", j.key)
	}
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, j := range jobs {
			m.held[j.key]--
		}
	})
}

func (m *meeting) added(n int) { m.mu.Lock(); m.accepted += n; m.mu.Unlock() }

// take takes jobs in the scope of ctx and has f work on them.
func (m *meeting) take(ctx context.Context, limit int, f func(jobs []pairJob) error) error {
	jobs, err := m.q.Take(ctx, limit)
	if err != nil {
		return err
	}
	letGo := m.hold(jobs)
	defer letGo()
	return f(jobs)
}

// alone runs f on a goroutine that it may leave by a panic or Goexit.
func (m *meeting) alone(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
	<-done
}

func (m *meeting) scope(body func(ctx context.Context) error, opts ...async.ScopeOption) {
	m.alone(func() { _ = async.Scope(m.root, body, opts...) })
}

var pairCalls = []struct {
	name string
	call func(m *meeting, r *rand.Rand)
}{
	{"Add", func(m *meeting, r *rand.Rand) {
		if m.q.Add(pairJob{r.IntN(6), r.IntN(100)}) {
			m.added(1)
		}
	}},
	{"AddAll", func(m *meeting, r *rand.Rand) {
		m.added(3 - len(m.q.AddAll(pairJob{r.IntN(6), 1}, pairJob{r.IntN(6), 2}, pairJob{r.IntN(6), 3})))
	}},
	{"AddAfter", func(m *meeting, r *rand.Rand) {
		if m.q.AddAfter(time.Duration(r.IntN(4)-1)*time.Millisecond, pairJob{r.IntN(6), r.IntN(100)}) {
			m.added(1)
		}
	}},
	{"Remove", func(m *meeting, r *rand.Rand) { m.q.Remove(r.IntN(6)) }},
	{"look", func(m *meeting, r *rand.Rand) {
		m.q.Queued()
		m.q.InProgress()
		m.q.Attempt(r.IntN(6))
		checkStats(m.t, m.q)
	}},
	{"Do", func(m *meeting, r *rand.Rand) {
		m.scope(func(ctx context.Context) error {
			return m.take(ctx, 2, func([]pairJob) error { runtime.Gosched(); return nil })
		})
	}},
	{"Do that fails", func(m *meeting, r *rand.Rand) {
		m.scope(func(ctx context.Context) error { return m.take(ctx, 2, func([]pairJob) error { return errPair }) })
	}},
	{"Do in Do", func(m *meeting, r *rand.Rand) {
		m.scope(func(ctx context.Context) error {
			return m.take(ctx, 1, func([]pairJob) error {
				inner, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				_ = async.Scope(inner, func(ctx context.Context) error { return m.take(ctx, 1, func([]pairJob) error { return nil }) })
				return nil
			})
		})
	}},
	{"Do that panics", func(m *meeting, r *rand.Rand) {
		m.scope(func(ctx context.Context) error { return m.take(ctx, 1, func([]pairJob) error { panic(errPair) }) })
	}},
	{"Do that exits", func(m *meeting, r *rand.Rand) {
		m.scope(func(ctx context.Context) error {
			return m.take(ctx, 1, func([]pairJob) error { runtime.Goexit(); return nil })
		})
	}},
	{"Do with a hook that fails", func(m *meeting, r *rand.Rand) {
		m.scope(func(ctx context.Context) error {
			return m.take(ctx, 1, func([]pairJob) error {
				async.OnExit(ctx, func(context.Context, error) error { return errPair })
				return nil
			})
		})
	}},
	{"Do that is cancelled", func(m *meeting, r *rand.Rand) {
		ctx, cancel := context.WithCancel(m.root)
		go cancel()
		m.alone(func() {
			_ = async.Scope(ctx, func(ctx context.Context) error { return m.take(ctx, 1, func([]pairJob) error { return nil }) })
		})
	}},
	{"Do with a time limit", func(m *meeting, r *rand.Rand) {
		m.scope(func(ctx context.Context) error {
			return m.take(ctx, 1, func([]pairJob) error { return async.Sleep(ctx, time.Second) })
		}, async.Timeout(time.Millisecond))
	}},
	{"Ack by a task", func(m *meeting, r *rand.Rand) {
		m.scope(func(ctx context.Context) error {
			jobs, err := m.q.Take(ctx, 2)
			if err == nil {
				letGo := m.hold(jobs)
				async.Go(ctx, func(ctx context.Context) error { letGo(); m.q.Ack(ctx, jobs...); return nil })
			}
			return err
		})
	}},
	{"Nack and Take again", func(m *meeting, r *rand.Rand) {
		m.scope(func(ctx context.Context) error {
			for range 2 {
				jobs, err := m.q.Take(ctx, 2)
				if err != nil {
					return err
				}
				m.hold(jobs)()
				m.q.Nack(ctx, []error{errPair, nil}[r.IntN(2)], jobs...)
			}
			return nil
		})
	}},
	{"Takes under Limit", func(m *meeting, r *rand.Rand) {
		m.scope(func(ctx context.Context) error {
			for range 3 {
				async.Go(ctx, func(ctx context.Context) error { return m.take(ctx, 1, func([]pairJob) error { return nil }) })
			}
			return nil
		}, async.Limit(1))
	}},
	{"Takes that are cut short", func(m *meeting, r *rand.Rand) {
		m.scope(func(ctx context.Context) error {
			for range 3 {
				short, cancel := context.WithCancel(ctx)
				go func() {
					if m.q.Add(pairJob{100, 0}) {
						m.added(1)
					}
					cancel()
				}() // both at once
				jobs, err := m.q.Take(short, 2)
				m.hold(jobs)()
				m.q.Ack(ctx, jobs...)
				m.q.mu.Lock()
				assert.Nil(m.t, m.q.holders.find(bridge.ScopeOf(ctx)), "the scope holds nothing")
				m.q.mu.Unlock()
				if errors.Is(err, ErrClosed) {
					return err
				}
			}
			return nil
		})
	}},
	{"Consume", func(m *meeting, r *rand.Rand) {
		ctx, cancel := context.WithTimeout(m.root, time.Millisecond)
		defer cancel()
		how := r.IntN(8)
		m.alone(func() {
			_ = m.q.Consume(ctx, 3, 2, func(ctx context.Context, jobs []pairJob) error {
				defer m.hold(jobs)()
				switch how {
				case 0:
					if m.q.Attempt(jobs[0].key) < 3 { // not for ever: no time passes meanwhile
						return errPair
					}
				case 1:
					panic(errPair)
				case 2:
					runtime.Goexit()
				case 3:
					async.Go(ctx, func(context.Context) error { runtime.Gosched(); return nil })
				case 4:
					ctx.Done()
				}
				return nil
			})
		})
	}},
	{"a stray Take", func(m *meeting, r *rand.Rand) {
		var stray sync.WaitGroup
		m.scope(func(ctx context.Context) error {
			stray.Go(func() {
				jobs, _ := m.q.Take(ctx, 1)
				m.q.Nack(ctx, nil, jobs...)
			})
			return nil
		})
		stray.Wait()
	}},
	{"Drain", func(m *meeting, r *rand.Rand) {
		if r.IntN(6) == 0 {
			ctx, cancel := context.WithTimeout(m.root, time.Millisecond)
			defer cancel()
			_ = m.q.Drain(ctx)
		}
	}},
	{"Close", func(m *meeting, r *rand.Rand) {
		if r.IntN(6) == 0 {
			m.q.Close()
		}
	}},
}
