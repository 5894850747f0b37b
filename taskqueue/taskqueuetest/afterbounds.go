package taskqueuetest

import (
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func afterMany(f *fixture) {
	for _, kind := range []store.OutcomeKind{store.Succeeded, store.Buried} {
		f.add(task("parent"))
		f.many(2500, func(_ int, t *taskqueue.Task) { t.After = []string{"parent"} })
		f.counts(2500, taskqueue.StateWaiting)
		f.run("parent", kind)
		waits := f.stats().States[taskqueue.StateWaiting]
		assert.Less(f, waits, int64(2500))
		assert.GreaterOrEqual(f, waits, int64(1500), "a step is bounded")
		audit(f.T, f.s)
		n := 0
		for range 20 {
			got := f.asks(1000)
			n += len(got.Tasks)
			if waits = f.stats().States[taskqueue.StateWaiting]; waits == 0 && len(got.Tasks) == 0 {
				break
			}
			assert.False(f, waits > 0 && (got.NextDue.IsZero() || got.NextDue.After(got.Now)), "there is more to do")
			var all []store.Outcome
			for _, run := range got.Tasks {
				all = append(all, store.Outcome{Ref: ref(run), Kind: store.Succeeded})
			}
			f.settleAll(all...)
		}
		want := map[store.OutcomeKind]int{store.Succeeded: 2500}[kind]
		assert.Equal(f, want, n)
		f.counts(2500-want, taskqueue.StateCancelled)
		f.act("parent", store.ActDelete)
		assert.Equal(f, 2500, f.purge(taskqueue.StateCancelled)+f.purge(taskqueue.StateDone))
	}
}

// A task that is cancelled waits for nothing any more: a step that cancels many has that to do, too.
func afterWide(f *fixture) {
	f.add(task("a"), task("b"))
	for call := range 4 {
		var tasks []taskqueue.Task
		for i := range 300 {
			tasks = append(tasks, after(fmt.Sprintf("%d %03d", call, i), "", "a", "b"))
		}
		f.add(tasks...)
	}
	f.act("a", store.ActCancel)
	assert.GreaterOrEqual(f, f.stats().States[taskqueue.StateWaiting], int64(1200-500), "a thousand edges are those of 500")
	f.claimUntilNoneWaits(20)
	f.run("b", store.Succeeded)
	f.counts(1201, taskqueue.StateCancelled)
}

// claimUntilNoneWaits has claims go on to tell the tasks that wait.
func (f *fixture) claimUntilNoneWaits(most int) {
	f.Helper()
	for n := 0; f.stats().States[taskqueue.StateWaiting] > 0; n++ {
		require.Less(f, n, most)
		f.claim(0)
	}
}

func afterDeep(f *fixture) {
	tasks := []taskqueue.Task{task("000")}
	for i := 1; i < 200; i++ {
		tasks = append(tasks, after(fmt.Sprintf("%03d", i), "", tasks[i-1].ID))
	}
	f.add(tasks...)
	f.counts(199, taskqueue.StateWaiting)
	f.act("000", store.ActCancel)
	audit(f.T, f.s)
	f.claimUntilNoneWaits(50)
	f.counts(200, taskqueue.StateCancelled)
}
