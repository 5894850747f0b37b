package taskqueuetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A task that was cancelled with its parent, and is retried, does not wait any more.
func afterRetry(f *fixture) {
	f.add(task("a"), after("b", "", "a"), after("c", "", "b"))
	f.act("a", store.ActCancel)
	assert.True(f, f.act("a", store.ActRetry))
	f.in("b", taskqueue.StateCancelled)
	assert.True(f, f.act("b", store.ActRetry))
	f.in("b", taskqueue.StateReady)
	f.in("c", taskqueue.StateCancelled)
	f.add(after("d", "", "b"))
	assert.Len(f, f.claim(10), 2)
}

func afterUnknown(f *fixture) {
	f.add(task("there"), unique("holder"))
	refuses := func(tasks ...taskqueue.Task) error {
		f.Helper()
		_, err := f.s.Enqueue(ctx, queue, tasks)
		require.Error(f, err)
		return err
	}
	invalid := func(tasks ...taskqueue.Task) string { f.Helper(); return f.invalid(refuses(tasks...)).Why }
	assert.Contains(f, invalid(task("x"), after("b", "", "there", "nobody")), `"nobody"`)
	invalid(after("b", "", "x"), task("x"))
	invalid(after("b", "", "b"))
	invalid(after("b", "", "there", "there"))
	invalid(after("b", "sometimes", "there"))
	invalid(after("b", taskqueue.OnFailedRun))
	invalid(after("b", "", "a\x00b"))
	many := make([]string, taskqueue.MaxAfter+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	invalid(after("b", "", many...))
	_, err := f.s.Tick(ctx, taskqueue.Tick{Queue: queue, Name: "n", Schedule: "@daily", At: time.Now(), Task: after("b", "", "there")})
	f.invalid(err)
	_, err = f.s.Enqueue(ctx, queue+"2", []taskqueue.Task{after("b", "", "there")})
	f.invalid(err)
	var held *taskqueue.DuplicateError
	require.ErrorAs(f, refuses(unique("x"), after("b", "", "x")), &held)
	assert.Equal(f, "holder", held.Holder)
	assert.EqualValues(f, 2, f.stats().Counts[taskqueue.CountAdded], "nothing was added")
	assert.Len(f, f.claim(10), 2)

	all := make([]taskqueue.Task, taskqueue.MaxAfter, taskqueue.MaxAfter+1)
	for i := range all {
		all[i] = task(many[i])
	}
	f.add(append(all, after("of all", "", many[:taskqueue.MaxAfter]...))...)
	for _, run := range f.claim(1000) {
		assert.Equal(f, taskqueue.StateWaiting, f.get("of all").State)
		f.settle(run, store.Succeeded, 0)
	}
	f.in("of all", taskqueue.StateReady)
}

func afterForgotten(f *fixture) {
	f.add(task("a"))
	f.run("a", store.Succeeded)
	child := after("b", "", "a")
	f.add(child)
	f.act("a", store.ActDelete)
	assert.Equal(f, taskqueue.Exists, f.add(child)[0].Verdict)
}

func afterActs(f *fixture) {
	acts := map[string]struct {
		act  func() bool
		want taskqueue.State // 0: it is gone
		next taskqueue.State // of the one that waits for it
	}{
		"cancel":  {func() bool { return f.act("b", store.ActCancel) }, taskqueue.StateCancelled, taskqueue.StateCancelled},
		"promote": {func() bool { return f.act("b", store.ActPromote) }, taskqueue.StateReady, taskqueue.StateWaiting},
		"retry":   {func() bool { return !f.act("b", store.ActRetry) }, taskqueue.StateWaiting, taskqueue.StateWaiting},
		"delete":  {func() bool { return f.act("b", store.ActDelete) }, 0, taskqueue.StateCancelled},
		"purge":   {func() bool { return f.purge(taskqueue.StateWaiting) == 2 }, 0, 0},
	}
	for name, a := range acts {
		f.add(task("a"), after("b", "", "a"), after("c", "", "b"))
		assert.True(f, a.act(), name)
		for id, want := range map[string]taskqueue.State{"a": taskqueue.StateReady, "b": a.want, "c": a.next} {
			if want == 0 {
				f.gone(id, name)
			} else {
				assert.Equal(f, want, f.get(id).State, "%s: %s", name, id)
			}
		}
		audit(f.T, f.s)
		for more := true; more; { // all goes on to its end
			runs := f.claim(10)
			for _, run := range runs {
				f.settle(run, store.Succeeded, 0)
			}
			more = len(runs) > 0
		}
		f.counts(0, taskqueue.StateWaiting)
		for _, s := range []taskqueue.State{taskqueue.StateDone, taskqueue.StateCancelled} {
			f.purge(s)
		}
	}
}

func afterFilters(f *fixture) {
	q := f.q()
	chain := func() { f.add(task("a"), after("b", "", "a"), after("c", "", "b")) }
	chain()
	n, err := q.CancelAll(ctx, taskqueue.Filter{State: taskqueue.StateWaiting})
	require.NoError(f, err)
	assert.Positive(f, n)
	f.in("a", taskqueue.StateReady)
	f.in("b", taskqueue.StateCancelled)
	f.in("c", taskqueue.StateCancelled)
	n, err = q.DeleteAll(ctx, taskqueue.Filter{})
	require.NoError(f, err)
	assert.Equal(f, 3, n)
	chain()
	n, err = q.DeleteAll(ctx, taskqueue.Filter{})
	require.NoError(f, err)
	assert.Positive(f, n)
	f.gone("a", "deleted with all")
	f.gone("b", "deleted with all")
}

func afterUnique(f *fixture) {
	child := unique("b")
	child.After = []string{"a"}
	f.add(task("a"), child)
	assert.Equal(f, taskqueue.Result{Verdict: taskqueue.Duplicate, ID: "b"}, f.add(unique("c"))[0])
	f.act("a", store.ActCancel)
	assert.Equal(f, taskqueue.Added, f.add(unique("c"))[0].Verdict, "b was cancelled")
	child = unique("d")
	child.UniqueKey, child.After = "l", []string{"a"}
	f.add(child)
	f.in("d", taskqueue.StateCancelled)
	child.ID, child.After = "e", nil
	assert.Equal(f, taskqueue.Added, f.add(child)[0].Verdict, "d was cancelled at once")
}
