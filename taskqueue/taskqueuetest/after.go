package taskqueuetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

var afterTests = map[string]func(*fixture){
	"After: a task runs when all that it waits for are done":        afterAll,
	"After: a chain in one call":                                    afterInOneCall,
	"After: OnFailed decides, however the other task ends":          afterFailures,
	"After: a task that has ended already":                          afterTheEnd,
	"After: wait lasts until a task of the id is done":              afterWait,
	"After: a retry runs alone":                                     afterRetry,
	"After: what cannot be waited for is refused":                   afterUnknown,
	"After: an enqueue is repeated when the others are forgotten":   afterForgotten,
	"After: every act on a task that waits":                         afterActs,
	"After: CancelAll and DeleteAll find what waits":                afterFilters,
	"After: a unique key is held by a task that waits":              afterUnique,
	"After: its own time counts, too":                               afterItsTime,
	"After: what expires or crashes tells the others in that claim": afterClaims,
	"After: R12 many wait for one, and go on in steps":              afterMany,
	"After: R12 what a cancelled task waits for counts":             afterWide,
	"After: R12 a long chain ends in steps":                         afterDeep,
	"After: a hint when a task may go on":                           afterHint,
	"After: what waits is listed and counted":                       afterListed,
}

func init() {
	for name, f := range afterTests {
		tests[name] = f
	}
}

// after is a task that waits for others.
func after(id string, onFailed taskqueue.OnFailed, parents ...string) taskqueue.Task {
	t := task(id)
	t.After, t.OnFailed = parents, onFailed
	return t
}

// run claims one task, which must be that, and says how it has ended.
func (f *fixture) run(id string, kind store.OutcomeKind) {
	f.Helper()
	t := f.one()
	require.Equal(f, id, t.ID)
	f.settle(t, kind, 0)
}

func afterAll(f *fixture) {
	f.add(task("a"), task("b"))
	f.add(after("c", "", "a", "b"))
	f.in("c", taskqueue.StateWaiting)
	assert.Equal(f, []string{"a", "b"}, f.get("c").After)
	f.run("a", store.Failed)
	f.run("b", store.Succeeded)
	f.in("c", taskqueue.StateWaiting)
	f.run("a", store.Succeeded)
	f.in("c", taskqueue.StateReady)
	t := f.one()
	assert.Equal(f, "c", t.ID)
	assert.Equal(f, []string{"a", "b"}, t.After, "the handler sees them")
	f.settle(t, store.Failed, 0)
	f.run("c", store.Succeeded)
}

func afterInOneCall(f *fixture) {
	tasks := []taskqueue.Task{task("c"), after("b", "", "c"), after("a", "", "b")}
	for _, want := range []taskqueue.Verdict{taskqueue.Added, taskqueue.Exists} {
		for _, r := range f.add(tasks...) {
			assert.Equal(f, want, r.Verdict, r.ID)
		}
	}
	assert.Len(f, f.claimFor("dies", 3, time.Millisecond), 1)
	f.lapse()
	for _, id := range []string{"c", "b", "a"} {
		f.run(id, store.Succeeded)
	}
	assert.Empty(f, f.claim(10))
}

// afterEnds are the ways in which a task ends badly.
var afterEnds = map[string]struct {
	says string
	end  func(f *fixture)
}{
	"dead":      {"dead", func(f *fixture) { f.run("a", store.Buried) }},
	"cancelled": {"cancelled", func(f *fixture) { assert.True(f, f.act("a", store.ActCancel)) }},
	"cancelled while it runs": {"cancelled", func(f *fixture) {
		run := f.one()
		f.act("a", store.ActCancel)
		f.settle(run, store.Failed, 0)
	}},
	"deleted": {"deleted", func(f *fixture) { assert.True(f, f.act("a", store.ActDelete)) }},
	"purged":  {"deleted", func(f *fixture) { assert.Equal(f, 1, f.purge(taskqueue.StateReady)) }},
}

func afterFailures(f *fixture) {
	for name, way := range afterEnds {
		f.add(task("a"), after("skip", taskqueue.OnFailedSkip, "a"), after("default", "", "a"), after("run", taskqueue.OnFailedRun, "a"),
			after("wait", taskqueue.OnFailedWait, "a"), after("of skip", "", "skip"), after("of skip, run", taskqueue.OnFailedRun, "skip"))
		before := f.stats().Counts[taskqueue.CountCancelled]
		way.end(f)
		for id, want := range map[string]taskqueue.State{
			"skip": taskqueue.StateCancelled, "default": taskqueue.StateCancelled, "run": taskqueue.StateReady, "wait": taskqueue.StateWaiting,
			"of skip": taskqueue.StateCancelled, "of skip, run": taskqueue.StateReady,
		} {
			assert.Equal(f, want, f.get(id).State, "%s: %s", name, id)
		}
		assert.Contains(f, f.get("skip").LastError, `"a"`, name)
		assert.Contains(f, f.get("skip").LastError, way.says, name)
		assert.Contains(f, f.get("of skip").LastError, `"skip"`, name)
		assert.False(f, f.get("skip").EndedAt.IsZero(), name)
		own := int64(0)
		if way.says == "cancelled" {
			own = 1
		}
		assert.Equal(f, 3+own, f.stats().Counts[taskqueue.CountCancelled]-before, name)
		assert.Len(f, f.claim(10), 2, name)
		audit(f.T, f.s)
		for _, id := range []string{"a", "skip", "default", "run", "wait", "of skip", "of skip, run"} {
			if i, err := f.s.Get(ctx, queue, id); err == nil && i.State == taskqueue.StateRunning {
				f.settle(i, store.Succeeded, 0)
			}
			if _, err := f.s.Act(ctx, queue, id, store.ActDelete); !errors.Is(err, taskqueue.ErrNotFound) {
				require.NoError(f, err)
			}
		}
	}
}

func afterTheEnd(f *fixture) {
	f.add(task("dead"))
	f.run("dead", store.Buried)
	f.add(task("done"))
	f.run("done", store.Succeeded)
	f.add(task("cancelled"))
	f.act("cancelled", store.ActCancel)
	for id, want := range map[string]taskqueue.State{"done": taskqueue.StateReady, "dead": taskqueue.StateCancelled, "cancelled": taskqueue.StateCancelled} {
		r := f.add(after("skip "+id, "", id), after("next "+id, "", "skip "+id), after("run "+id, taskqueue.OnFailedRun, id), after("wait "+id, taskqueue.OnFailedWait, id))
		for _, one := range r {
			assert.Equal(f, taskqueue.Added, one.Verdict, one.ID)
		}
		f.in("skip "+id, want)
		f.in("run "+id, taskqueue.StateReady)
		if id == "done" {
			f.in("wait done", taskqueue.StateReady)
			f.in("next done", taskqueue.StateWaiting)
		} else {
			f.in("wait "+id, taskqueue.StateWaiting)
			f.in("next "+id, taskqueue.StateCancelled)
			assert.Contains(f, f.get("skip "+id).LastError, id)
		}
	}
}

func afterWait(f *fixture) {
	f.add(task("a"), after("b", taskqueue.OnFailedWait, "a"))
	f.run("a", store.Buried)
	f.in("b", taskqueue.StateWaiting)
	assert.True(f, f.act("a", store.ActRetry))
	f.in("b", taskqueue.StateWaiting)
	f.run("a", store.Succeeded)
	f.in("b", taskqueue.StateReady)

	f.run("b", store.Succeeded)
	f.add(task("c"), after("d", taskqueue.OnFailedWait, "c"))
	for _, ended := range []bool{false, true} {
		if ended {
			f.run("c", store.Buried)
		}
		assert.True(f, f.act("c", store.ActDelete))
		f.in("d", taskqueue.StateWaiting)
		f.add(task("c"))
	}
	f.run("c", store.Succeeded)
	f.in("d", taskqueue.StateReady)
}

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
	var wrong *taskqueue.InvalidError
	invalid := func(tasks ...taskqueue.Task) {
		f.Helper()
		assert.ErrorAs(f, refuses(tasks...), &wrong)
	}
	invalid(task("x"), after("b", "", "there", "nobody"))
	assert.Contains(f, wrong.Why, `"nobody"`)
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
	assert.ErrorAs(f, err, &wrong)
	_, err = f.s.Enqueue(ctx, queue+"2", []taskqueue.Task{after("b", "", "there")})
	assert.ErrorAs(f, err, &wrong)
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
			if i, err := f.s.Get(ctx, queue, id); want == 0 {
				assert.ErrorIs(f, err, taskqueue.ErrNotFound, "%s: %s", name, id)
			} else {
				assert.Equal(f, want, i.State, "%s: %s", name, id)
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
		states := f.stats().States
		assert.Zero(f, states[taskqueue.StateWaiting], name)
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
	for _, id := range []string{"a", "b"} {
		_, err = f.s.Get(ctx, queue, id)
		assert.ErrorIs(f, err, taskqueue.ErrNotFound, id)
	}
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

func afterItsTime(f *fixture) {
	later := after("later", "", "a")
	later.Delay = time.Hour
	f.add(task("a"), later, after("now", "", "a"))
	before := time.Now()
	f.run("a", store.Succeeded)
	f.in("later", taskqueue.StateScheduled)
	f.in("now", taskqueue.StateReady)
	assert.False(f, f.get("now").DueAt.Before(before.Truncate(time.Microsecond)), "it is late only since it may go on")
	assert.False(f, f.get("now").DueAt.After(time.Now()))
	assert.True(f, f.act("later", store.ActPromote))
	assert.Len(f, f.claim(10), 2)
}

func afterClaims(f *fixture) {
	late := task("expires")
	late.ExpiresAt = time.Now().Add(-time.Second)
	f.add(late, after("skip", "", "expires"), after("run", taskqueue.OnFailedRun, "expires"))
	got := f.asks(10)
	assert.Empty(f, got.Tasks)
	assert.Equal(f, []string{"expires"}, got.Dead)
	assert.False(f, got.NextDue.IsZero() || got.NextDue.After(got.Now), "run may")
	f.in("skip", taskqueue.StateCancelled)
	f.run("run", store.Succeeded)

	crashes := task("crashes")
	crashes.MaxCrashes = 1
	f.add(crashes, after("skip 2", "", "crashes"), after("run 2", taskqueue.OnFailedRun, "crashes"), after("wait 2", taskqueue.OnFailedWait, "crashes"))
	run := f.claimFor("dies", 1, time.Millisecond)[0]
	for got = f.asks(10); len(got.Dead) == 0; got = f.asks(10) {
		require.Empty(f, got.Tasks)
		time.Sleep(2 * time.Millisecond)
	}
	require.Len(f, got.Tasks, 1, "in the claim that has found the end of the lease")
	assert.Equal(f, "run 2", got.Tasks[0].ID)
	f.in("skip 2", taskqueue.StateCancelled)
	assert.Equal(f, store.Settled, f.settle(run, store.Succeeded, 0), "the dead has come back")
	f.in("wait 2", taskqueue.StateReady)
	f.in("skip 2", taskqueue.StateCancelled)
}

func afterMany(f *fixture) {
	for _, kind := range []store.OutcomeKind{store.Succeeded, store.Buried} {
		f.add(task("parent"))
		f.many(2500, func(_ int, t *taskqueue.Task) { t.After = []string{"parent"} })
		assert.EqualValues(f, 2500, f.stats().States[taskqueue.StateWaiting])
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
				all = append(all, store.Outcome{Ref: store.Ref{ID: run.ID, Token: run.Token}, Kind: store.Succeeded})
			}
			_, err := f.s.Settle(ctx, queue, all)
			require.NoError(f, err)
		}
		want := map[store.OutcomeKind]int{store.Succeeded: 2500}[kind]
		assert.Equal(f, want, n)
		assert.EqualValues(f, 2500-want, f.stats().States[taskqueue.StateCancelled])
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
	for n := 0; f.stats().States[taskqueue.StateWaiting] > 0; n++ {
		require.Less(f, n, 20)
		f.claim(0)
	}
	f.run("b", store.Succeeded)
	assert.EqualValues(f, 1201, f.stats().States[taskqueue.StateCancelled])
}

func afterDeep(f *fixture) {
	tasks := []taskqueue.Task{task("000")}
	for i := 1; i < 200; i++ {
		tasks = append(tasks, after(fmt.Sprintf("%03d", i), "", tasks[i-1].ID))
	}
	f.add(tasks...)
	assert.EqualValues(f, 199, f.stats().States[taskqueue.StateWaiting])
	f.act("000", store.ActCancel)
	audit(f.T, f.s)
	for n := 0; f.stats().States[taskqueue.StateWaiting] > 0; n++ {
		require.Less(f, n, 50)
		f.claim(0)
	}
	assert.EqualValues(f, 200, f.stats().States[taskqueue.StateCancelled])
}

func afterHint(f *fixture) {
	f.add(task("a"), after("b", "", "a"))
	run := f.one()
	told := f.quiet()
	require.Empty(f, told.Tasks)
	f.settle(run, store.Succeeded, 0)
	f.soon(told.Seen)
	f.run("b", store.Succeeded)
}

func afterListed(f *fixture) {
	var want []string
	f.add(task("a"))
	for i := range 25 {
		id := fmt.Sprintf("w%02d", i)
		want = append(want, id)
		f.add(after(id, "", "a"))
	}
	got, pages := f.list(taskqueue.ListRequest{State: taskqueue.StateWaiting, Max: 10})
	assert.Equal(f, want, got)
	assert.Equal(f, 3, pages)
	got, _ = f.list(taskqueue.ListRequest{State: taskqueue.StateWaiting, Max: 4, Reverse: true})
	slices.Reverse(got)
	assert.Equal(f, want, got)
	assert.EqualValues(f, 25, f.stats().States[taskqueue.StateWaiting])
	assert.Equal(f, 25, f.purge(taskqueue.StateWaiting))
	f.in("a", taskqueue.StateReady)
}
