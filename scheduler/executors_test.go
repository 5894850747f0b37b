package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/ambit-go/ambit/scheduler"
)

var errPool = errors.New("the pool is full")

// manual collects what it is given. The test steps it.
type manual struct {
	mu    sync.Mutex
	tasks []func()
	given int // all that it ever was
}

func (m *manual) Execute(task func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tasks = append(m.tasks, task)
	m.given++
	return nil
}

func (m *manual) TryExecute(task func()) bool { return m.Execute(task) == nil }

// step runs what was given first, and reports false if there is nothing.
func (m *manual) step() bool {
	m.mu.Lock()
	if len(m.tasks) == 0 {
		m.mu.Unlock()
		return false
	}
	task := m.tasks[0]
	m.tasks = m.tasks[1:]
	m.mu.Unlock()
	task()
	return true
}

// run steps until there is nothing.
func (m *manual) run() {
	for m.step() {
	}
}

func (m *manual) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tasks)
}

// trying has TryExecute, too.
type trying struct {
	scheduler.ExecutorFunc
	try func(task func()) bool
}

func (p trying) TryExecute(task func()) bool { return p.try(task) }

// oneSlot runs one task at a time. Its Execute blocks meanwhile.
func oneSlot() trying {
	slot := make(chan struct{}, 1)
	start := func(task func()) {
		go func() {
			defer func() { <-slot }()
			task()
		}()
	}
	return trying{func(task func()) error {
		slot <- struct{}{}
		start(task)
		return nil
	}, func(task func()) bool {
		select {
		case slot <- struct{}{}:
			start(task)
			return true
		default:
			return false
		}
	}}
}

// refusing refuses every k-th task.
func refusing(k int32) scheduler.Executor {
	var n atomic.Int32
	return scheduler.ExecutorFunc(func(task func()) error {
		if n.Add(1)%k == 0 {
			return errPool
		}
		go task()
		return nil
	})
}

// queueing accepts everything and runs it later, one task after the other.
func queueing(t *testing.T) scheduler.Executor {
	m := &manual{}
	given := make(chan struct{}, 1<<20)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go func() {
		for {
			select {
			case <-given:
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					m.step()
				}()
				<-ended
			case <-stop:
				return
			}
		}
	}()
	return scheduler.ExecutorFunc(func(task func()) error {
		_ = m.Execute(task)
		given <- struct{}{}
		return nil
	})
}

// counting counts submissions, and how many are in flight at most.
type counting struct {
	scheduler.Executor
	given, flying, most atomic.Int32
}

func (c *counting) Execute(task func()) error {
	c.given.Add(1)
	return c.Executor.Execute(func() {
		now := c.flying.Add(1)
		for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
		}
		defer c.flying.Add(-1)
		task()
	})
}

// chaotic takes its time, now before, now after it starts the task.
func chaotic() scheduler.Executor {
	wait := func() {
		switch rand.N(4) {
		case 0:
			runtime.Gosched()
		case 1:
			time.Sleep(rand.N(20 * time.Microsecond))
		}
	}
	return trying{func(task func()) error {
		wait()
		go func() { wait(); task() }()
		wait()
		return nil
	}, func(task func()) bool {
		if wait(); rand.N(2) == 0 {
			return false
		}
		go func() { wait(); task() }()
		return true
	}}
}

// recovering recovers the panics of what p runs.
func recovering(p scheduler.Executor) scheduler.Executor {
	guard := func(task func()) func() {
		return func() {
			defer func() { _ = recover() }()
			task()
		}
	}
	execute := scheduler.ExecutorFunc(func(task func()) error { return p.Execute(guard(task)) })
	if p, ok := p.(interface{ TryExecute(func()) bool }); ok {
		return trying{execute, func(task func()) bool { return p.TryExecute(guard(task)) }}
	}
	return execute
}

func limitedGroup() scheduler.Executor {
	g := new(errgroup.Group)
	g.SetLimit(1)
	return scheduler.Errgroup(g)
}

// pools are as bad as they come, but for those that lose tasks. All of them run
// in a bubble.
var pools = map[string]func(t *testing.T) scheduler.Executor{
	"goroutines":         func(*testing.T) scheduler.Executor { return scheduler.Goroutines() },
	"inline":             func(*testing.T) scheduler.Executor { return scheduler.Inline() },
	"inline, by feeder":  func(*testing.T) scheduler.Executor { return scheduler.ExecutorFunc(scheduler.Inline().Execute) },
	"manual":             queueing,
	"one slot, blocking": func(*testing.T) scheduler.Executor { return oneSlot().ExecutorFunc },
	"one slot":           func(*testing.T) scheduler.Executor { return oneSlot() },
	"never by try": func(*testing.T) scheduler.Executor {
		return trying{oneSlot().ExecutorFunc, func(func()) bool { return false }}
	},
	"recovering": func(*testing.T) scheduler.Executor { return recovering(scheduler.Goroutines()) },
	"counting":   func(*testing.T) scheduler.Executor { return &counting{Executor: scheduler.Goroutines()} },
	"chaotic":    func(*testing.T) scheduler.Executor { return chaotic() },
	"limited":    func(*testing.T) scheduler.Executor { return scheduler.Limited(semaphore.NewWeighted(2)) },
	"errgroup":   func(*testing.T) scheduler.Executor { return limitedGroup() },
}

// refusers are pools that refuse now and then.
var refusers = map[string]func(t *testing.T) scheduler.Executor{
	"refuse all":       func(*testing.T) scheduler.Executor { return refusing(1) },
	"refuse every 2nd": func(*testing.T) scheduler.Executor { return refusing(2) },
	"refuse every 3rd": func(*testing.T) scheduler.Executor { return refusing(3) },
	"refuse, with a try": func(*testing.T) scheduler.Executor {
		return trying{refusing(3).Execute, func(func()) bool { return false }}
	},
}

// addUp checks the sum of the counts.
func addUp(t *testing.T, w *scheduler.ExecutorWorker) scheduler.Stats {
	t.Helper()
	st := w.Stats()
	sum := st.Done + st.Cancelled + st.Rejected + st.Panicked + st.Exited + uint64(st.Pending)
	if st.Running {
		sum++
	}
	require.Equal(t, st.Scheduled, sum, "%+v", st)
	return st
}

// idle waits until w has nothing to do and closes it.
func idle(t *testing.T, w *scheduler.ExecutorWorker) {
	t.Helper()
	require.NoError(t, w.Drain(t.Context()))
	st := addUp(t, w)
	require.Zero(t, st.Pending)
	require.False(t, st.Running)
}

// blocked posts a task that runs until the function it returns is called. It
// returns when that task runs.
func blocked(t *testing.T, w *scheduler.ExecutorWorker) (release func()) {
	t.Helper()
	running, stop := make(chan struct{}), make(chan struct{})
	require.NoError(t, w.Post(func() { close(running); <-stop }))
	<-running
	return sync.OnceFunc(func() { close(stop) })
}

func nothing(context.Context) {}

// oneSlotRecovering is a pool that can only block, and recovers panics.
func oneSlotRecovering() scheduler.Executor {
	slot := make(chan struct{}, 1)
	return scheduler.ExecutorFunc(func(task func()) error {
		slot <- struct{}{}
		go func() {
			defer func() {
				_ = recover()
				<-slot
			}()
			task()
		}()
		return nil
	})
}

// refuseEvery is a pool that refuses every k-th task, and recovers panics.
func refuseEvery(k int) scheduler.Executor {
	count := make(chan int, 1)
	count <- 0
	return scheduler.ExecutorFunc(func(task func()) error {
		n := <-count + 1
		count <- n
		if n%k == 0 {
			return fmt.Errorf("not the %dth", n)
		}
		go func() {
			defer func() { _ = recover() }()
			task()
		}()
		return nil
	})
}
