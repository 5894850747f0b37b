package taskqueuetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// RunWorkers tests what a worker does on stores that open returns: an empty one for
// every test. They run at the same time, in real time, and take a few seconds.
func RunWorkers(t *testing.T, open func(t *testing.T) taskqueue.Store) {
	for _, name := range slices.Sorted(maps.Keys(workerTests)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			defer func() { assert.NoError(t, s.Close()) }()
			workerTests[name](&workFixture{t, s})
			audit(t, s)
		})
	}
}

var workerTests = map[string]func(*workFixture){
	"asynq PR 926: no outcome is lost in an outage of two seconds":       outageAtSettling,
	"asynq PR 926: no outcome is lost with the answers of two seconds":   answersLostAtSettling,
	"bullmq 2466: a delayed task runs though nothing else happens":       delayedRunsByItself,
	"asynq 532: a run that was cancelled is not retried":                 cancelledRunIsNotRetried,
	"asynq: a place is not given back while the handler still runs":      placeIsKept,
	"asynq 371: one process runs a periodic job that all of them have":   periodicRunsOnce,
	"R8 a handler that ignores that its lease is lost settles nothing":   deafHandler,
	"a stop: a grace, then ErrStopping, and what is left is given back":  stopGivesBack,
	"a stop: what returns nil in the grace is done, and nothing is lost": stopLetsEnd,
}

// patience bounds every test of workers: one that needs as long has failed. Leases that are to last, however slow
// the machine is, are as long.
const patience = 5 * time.Minute

type workFixture struct {
	*testing.T
	s taskqueue.Store
}

func (f *workFixture) queue(s taskqueue.Store) *taskqueue.Queue {
	q, err := taskqueue.New(s)
	require.NoError(f, err)
	return q.In(queue)
}

// add adds tasks that are kept when they have ended.
func (f *workFixture) add(tasks ...taskqueue.Task) {
	f.Helper()
	for i := range tasks {
		tasks[i].Type, tasks[i].Retention = "t", time.Hour
	}
	_, err := f.queue(f.s).EnqueueAll(ctx, tasks)
	require.NoError(f, err)
}

func (f *workFixture) get(id string) taskqueue.Info {
	f.Helper()
	i, err := f.s.Get(ctx, queue, id)
	require.NoError(f, err)
	return i
}

// work has h run tasks of s, until ctx is done.
func (f *workFixture) work(ctx context.Context, s taskqueue.Store, h taskqueue.Handler, opts ...taskqueue.WorkOption) {
	f.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	assert.NoError(f, f.queue(s).Work(ctx, taskqueue.Handlers{"t": h}, append([]taskqueue.WorkOption{taskqueue.Lease(time.Second)}, opts...)...))
}

// A mangled store loses calls, or their answers. Settles are noted.
type mangled struct {
	taskqueue.Store
	mu      sync.Mutex
	calls   bool // get lost
	answers bool
	extends bool   // calls of Extend get lost
	failed  int    // settlements without an answer
	missed  func() // called with the first of them; nil: nothing
	settled []store.Ref
}

var errLost = errors.New("lost on the way")

func (m *mangled) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// through makes a call, unless that gets lost, and returns what it has answered, unless that gets lost.
func through[T any](m *mangled, f func() (T, error)) (got T, err error) {
	m.mu.Lock()
	calls, answers := m.calls, m.answers
	m.mu.Unlock()
	if !calls {
		got, err = f()
	}
	if calls || answers {
		return *new(T), errLost
	}
	return got, err
}

func (m *mangled) Claim(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error) {
	return through(m, func() (taskqueue.Claimed, error) { return m.Store.Claim(ctx, r) })
}

func (m *mangled) Extend(ctx context.Context, r store.ExtendRequest) ([]store.ExtendResult, error) {
	m.mu.Lock()
	gone := m.extends
	m.mu.Unlock()
	if gone {
		return nil, errLost
	}
	return through(m, func() ([]store.ExtendResult, error) { return m.Store.Extend(ctx, r) })
}

func (m *mangled) Settle(ctx context.Context, queue string, all []store.Outcome) ([]store.SettleResult, error) {
	got, err := through(m, func() ([]store.SettleResult, error) { return m.Store.Settle(ctx, queue, all) })
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range all {
		m.settled = append(m.settled, o.Ref)
	}
	if err == errLost {
		if m.failed++; m.failed == 1 && m.missed != nil {
			m.missed()
		}
	}
	return got, err
}

func outageAtSettling(f *workFixture) {
	f.outage(func(m *mangled, on bool) { m.calls = on })
}

func answersLostAtSettling(f *workFixture) {
	f.outage(func(m *mangled, on bool) { m.answers = on })
}

// outage has the store away when the only task has ended, and the worker told to stop, until two seconds after the first
// settlement.
func (f *workFixture) outage(mangle func(*mangled, bool)) {
	m := &mangled{Store: f.s}
	m.missed = func() { time.AfterFunc(2*time.Second, func() { m.set(func() { mangle(m, false) }) }) }
	f.add(taskqueue.Task{ID: "a"})
	work, stop := context.WithCancel(f.Context())
	defer stop()
	runs := 0
	f.work(work, m, func(context.Context, *taskqueue.Claim) error {
		runs++
		m.set(func() { mangle(m, true) })
		stop()
		return nil
	}, taskqueue.Lease(30*time.Second))
	assert.Equal(f, 1, runs)
	assert.Positive(f, m.failed)
	assert.Equal(f, taskqueue.StateDone, f.get("a").State)
	assert.Zero(f, f.get("a").Crashes)
}

// deafToHints is a store that never says that something has become due.
type deafToHints struct{ taskqueue.Store }

func (deafToHints) Wait(ctx context.Context, _ string, _ uint64, until time.Time) error {
	return async.Sleep(ctx, time.Until(until))
}

func delayedRunsByItself(f *workFixture) {
	f.add(taskqueue.Task{ID: "a", Delay: 1300 * time.Millisecond})
	work, stop := context.WithCancel(f.Context())
	defer stop()
	begin := time.Now()
	f.work(work, deafToHints{f.s}, func(context.Context, *taskqueue.Claim) error { stop(); return nil })
	assert.Less(f, time.Since(begin), patience)
	assert.Equal(f, taskqueue.StateDone, f.get("a").State)
}

func cancelledRunIsNotRetried(f *workFixture) {
	f.add(taskqueue.Task{ID: "a"})
	work, stop := context.WithCancel(f.Context())
	defer stop()
	runs := 0
	f.work(work, f.s, func(ctx context.Context, c *taskqueue.Claim) error {
		if c.ID == "after" { // a run again of the other would have come before
			stop()
			return nil
		}
		if runs++; runs > 1 {
			stop()
			return nil
		}
		ok, err := f.queue(f.s).Cancel(ctx, "a")
		assert.NoError(f, err)
		assert.True(f, ok)
		<-ctx.Done()
		assert.Equal(f, taskqueue.ErrCancelled, context.Cause(ctx))
		f.add(taskqueue.Task{ID: "after", Delay: time.Second})
		return taskqueue.RetryAfter(0, errors.New("it was stopped"))
	}, taskqueue.Concurrency(1), taskqueue.Lease(10*time.Second)) // a third of it goes by until the worker hears of the Cancel
	assert.Equal(f, 1, runs)
	assert.Equal(f, taskqueue.StateCancelled, f.get("a").State)
}

func placeIsKept(f *workFixture) {
	f.add(taskqueue.Task{Timeout: 50 * time.Millisecond, MaxFailures: 1}, taskqueue.Task{Timeout: 50 * time.Millisecond, MaxFailures: 1})
	var mu sync.Mutex
	running, most, runs := 0, 0, 0
	note := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		running += n
		most = max(most, running)
		runs += max(n, 0)
	}
	f.work(f.Context(), f.s, func(ctx context.Context, _ *taskqueue.Claim) error {
		note(1)
		defer note(-1)
		time.Sleep(300 * time.Millisecond) // it does not care
		return ctx.Err()
	}, taskqueue.Concurrency(1), taskqueue.WorkUntilEmpty(), taskqueue.Lease(patience))
	assert.Equal(f, 2, runs)
	assert.Equal(f, 1, most)
}

func periodicRunsOnce(f *workFixture) {
	work, stop := context.WithCancel(f.Context())
	defer stop()
	var mu sync.Mutex
	ran := map[string]int{}
	var all sync.WaitGroup
	for range 3 {
		q := f.queue(f.s)
		require.NoError(f, q.Every("report", "@every 1s", taskqueue.Task{Type: "t", Queue: queue}))
		all.Go(func() {
			work, cancel := context.WithTimeout(work, patience)
			defer cancel()
			assert.NoError(f, q.Work(work, taskqueue.Handlers{"t": func(_ context.Context, c *taskqueue.Claim) error {
				mu.Lock()
				defer mu.Unlock()
				if ran[c.ID]++; len(ran) == 3 {
					stop()
				}
				return nil
			}}))
		})
	}
	all.Wait()
	assert.GreaterOrEqual(f, len(ran), 3)
	for id, n := range ran {
		assert.Equal(f, 1, n, "%s", id)
	}
}
