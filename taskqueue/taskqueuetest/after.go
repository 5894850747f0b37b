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
	f.counts(25, taskqueue.StateWaiting)
	assert.Equal(f, 25, f.purge(taskqueue.StateWaiting))
	f.in("a", taskqueue.StateReady)
}
