package taskqueuetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

const queue = "mail"

var ctx = context.Background()

// A fixture is a store with one of its queues. Its methods call the store about that queue, and no call may fail.
type fixture struct {
	*testing.T
	s     taskqueue.Store
	queue string
	n     int // claims
}

func task(id string) taskqueue.Task {
	return taskqueue.Task{ID: id, Type: "t", Queue: queue, MaxFailures: 3, MaxCrashes: 2}
}

// ref is the run of a claimed task.
func ref(t taskqueue.Info) store.Ref { return store.Ref{ID: t.ID, Token: t.Token} }

// q is the queue as programs have it.
func (f *fixture) q() *taskqueue.Queue {
	f.Helper()
	q, err := taskqueue.New(f.s)
	require.NoError(f, err)
	return q.In(f.queue)
}

func (f *fixture) configure(change func(*taskqueue.Settings)) {
	f.Helper()
	require.NoError(f, f.q().Configure(ctx, change))
}

func (f *fixture) add(tasks ...taskqueue.Task) []taskqueue.Result {
	f.Helper()
	results, err := f.s.Enqueue(ctx, f.queue, tasks)
	require.NoError(f, err)
	require.Len(f, results, len(tasks))
	return results
}

// many adds n tasks of which change makes what they are to be, a step's worth at a time.
func (f *fixture) many(n int, change func(i int, t *taskqueue.Task)) {
	f.Helper()
	var tasks []taskqueue.Task
	for i := range n {
		t := task(fmt.Sprintf("%05d", i))
		change(i, &t)
		if tasks = append(tasks, t); len(tasks) == taskqueue.MaxBatch || i == n-1 {
			f.add(tasks...)
			tasks = nil
		}
	}
}

// claims claims by the worker w, with a nonce of its own and for a minute, unless r says otherwise.
func (f *fixture) claims(r store.ClaimRequest) taskqueue.Claimed {
	f.Helper()
	f.n++
	if r.Queue = f.queue; r.Worker == "" {
		r.Worker = "w"
	}
	if r.Nonce == "" {
		r.Nonce = fmt.Sprint(f.n)
	}
	if r.Lease == 0 {
		r.Lease = time.Minute
	}
	got, err := f.s.Claim(ctx, r)
	require.NoError(f, err)
	return got
}

func (f *fixture) asks(n int) taskqueue.Claimed {
	f.Helper()
	return f.claims(store.ClaimRequest{Max: n})
}

func (f *fixture) claim(n int) []taskqueue.Info { f.Helper(); return f.asks(n).Tasks }

func (f *fixture) claimFor(worker string, n int, lease time.Duration) []taskqueue.Info {
	f.Helper()
	return f.claims(store.ClaimRequest{Worker: worker, Max: n, Lease: lease}).Tasks
}

// one claims one task, which there must be.
func (f *fixture) one() taskqueue.Info {
	f.Helper()
	got := f.claim(1)
	require.Len(f, got, 1)
	return got[0]
}

// lapse waits until leases of a millisecond have been reaped: once for their end, and
// once more because nobody has called meanwhile.
func (f *fixture) lapse() {
	f.Helper()
	for range 2 {
		time.Sleep(10 * time.Millisecond)
		require.Empty(f, f.claim(0))
	}
}

func (f *fixture) extend(lease time.Duration, runs ...store.Ref) []store.ExtendResult {
	f.Helper()
	r, err := f.s.Extend(ctx, store.ExtendRequest{Queue: f.queue, Worker: "w", Lease: lease, Refs: runs})
	require.NoError(f, err)
	return r
}

func (f *fixture) settleAll(outcomes ...store.Outcome) []store.SettleResult {
	f.Helper()
	r, err := f.s.Settle(ctx, f.queue, outcomes)
	require.NoError(f, err)
	require.Len(f, r, len(outcomes))
	return r
}

func (f *fixture) settle(t taskqueue.Info, k store.OutcomeKind, after time.Duration) store.SettleResult {
	f.Helper()
	return f.settleAll(store.Outcome{Ref: ref(t), Kind: k, After: after, Error: "why"})[0]
}

func (f *fixture) get(id string) taskqueue.Info {
	f.Helper()
	i, err := f.s.Get(ctx, f.queue, id)
	require.NoError(f, err)
	return i
}

// gone checks that there is no task of an id.
func (f *fixture) gone(id, why string) {
	f.Helper()
	_, err := f.s.Get(ctx, f.queue, id)
	assert.ErrorIs(f, err, taskqueue.ErrNotFound, "%s: %s", why, id)
}

func (f *fixture) act(id string, a store.Act) bool {
	f.Helper()
	ok, err := f.s.Act(ctx, f.queue, id, a)
	require.NoError(f, err)
	return ok
}

func (f *fixture) tick(t taskqueue.Tick) bool {
	f.Helper()
	t.Queue, t.Name = f.queue, "report"
	did, err := f.s.Tick(ctx, t)
	require.NoError(f, err)
	return did
}

// periodic is the only periodic job.
func (f *fixture) periodic() taskqueue.Periodic {
	f.Helper()
	all, err := f.s.Periodic(ctx, f.queue)
	require.NoError(f, err)
	require.Len(f, all, 1)
	return all[0]
}

func (f *fixture) stats() taskqueue.Stats {
	f.Helper()
	s, err := f.s.Stats(ctx, f.queue)
	require.NoError(f, err)
	return s
}

// counts checks how many tasks are in a state.
func (f *fixture) counts(want int, s taskqueue.State) {
	f.Helper()
	assert.EqualValues(f, want, f.stats().States[s], "tasks that are %v", s)
}

func (f *fixture) page(r taskqueue.ListRequest) taskqueue.Page {
	f.Helper()
	page, err := f.s.List(ctx, f.queue, r)
	require.NoError(f, err)
	return page
}

// pages calls visit with one page after the other.
func (f *fixture) pages(r taskqueue.ListRequest, visit func(tasks []taskqueue.Info)) {
	f.Helper()
	for n := 0; ; n++ {
		page := f.page(r)
		visit(page.Tasks)
		if r.Cursor = page.Cursor; r.Cursor == "" {
			return
		}
		require.Less(f, n, 1000, "the pages have no end")
	}
}

// list returns the ids of all tasks that r asks for, and on how many pages they are.
func (f *fixture) list(r taskqueue.ListRequest) (ids []string, pages int) {
	f.Helper()
	f.pages(r, func(tasks []taskqueue.Info) {
		pages++
		for _, t := range tasks {
			assert.Equal(f, r.State, t.State)
			ids = append(ids, t.ID)
		}
	})
	return ids, pages
}

// purgeStep is the first step of a purge.
func (f *fixture) purgeStep(s taskqueue.State, cursor string) (n int, next string) {
	f.Helper()
	n, next, err := f.s.Purge(ctx, f.queue, s, cursor)
	require.NoError(f, err)
	return n, next
}

// purge deletes all tasks in a state and returns how many.
func (f *fixture) purge(s taskqueue.State) int {
	f.Helper()
	n, next := f.purgeStep(s, "")
	for some := 0; next != ""; n += some {
		some, next = f.purgeStep(s, next)
	}
	return n
}

// invalid checks that a request was refused because of what it asks for.
func (f *fixture) invalid(err error, what ...any) (wrong *taskqueue.InvalidError) {
	f.Helper()
	require.ErrorAs(f, err, &wrong, what...)
	return wrong
}

// in checks the state of a task, and that List finds it in that one alone.
func (f *fixture) in(id string, want taskqueue.State) {
	f.Helper()
	assert.Equal(f, want, f.get(id).State, "state of %s", id)
	for s := taskqueue.StateScheduled; s <= taskqueue.StateWaiting; s++ {
		ids, _ := f.list(taskqueue.ListRequest{State: s})
		assert.Equal(f, s == want, slices.Contains(ids, id), "%s listed as %v, it is %v", id, s, want)
	}
	assert.Positive(f, f.stats().States[want], "count of %v", want)
}

// audit has the store check itself, if it can.
func audit(t *testing.T, s taskqueue.Store) {
	a, ok := s.(taskqueue.Auditor)
	if !ok {
		return
	}
	names, err := s.Queues(ctx)
	require.NoError(t, err)
	for _, name := range names {
		faults, err := a.Audit(ctx, name)
		assert.NoError(t, err)
		assert.Empty(t, faults, "the audit of queue %s", name)
	}
}
