package taskqueuetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// Every act of administration on a task in every state, with every option of a task and
// every setting of its queue.

// pairOptions are what a task may be beside its state.
var pairOptions = map[string]func(*taskqueue.Task){
	"plain":              func(*taskqueue.Task) {},
	"unique":             func(t *taskqueue.Task) { t.UniqueKey = "k" },
	"unique until start": func(t *taskqueue.Task) { t.UniqueKey, t.Until = "k", taskqueue.Start },
	"expires":            func(t *taskqueue.Task) { t.ExpiresAt = time.Now().Add(24 * time.Hour) },
	"urgent":             func(t *taskqueue.Task) { t.Priority = taskqueue.Priorities - 1 },
	"kept":               func(t *taskqueue.Task) { t.Retention = time.Hour },
}

var pairSettings = map[string]taskqueue.Settings{
	"":            {},
	"paused":      {Paused: true},
	"concurrency": {Concurrency: 1},
	"rate":        {Rate: 1000, Burst: 1000},
	"max dead":    {MaxDead: 1, DeadRetention: time.Hour},
}

// pairActs is what an act makes of a state; missing: nothing, and it says false. 0: the task is gone.
var pairActs = map[store.Act]map[taskqueue.State]taskqueue.State{
	store.ActCancel: {
		taskqueue.StateScheduled: taskqueue.StateCancelled, taskqueue.StateReady: taskqueue.StateCancelled,
		taskqueue.StateRetrying: taskqueue.StateCancelled, taskqueue.StateRunning: taskqueue.StateRunning,
	},
	store.ActPromote: {taskqueue.StateScheduled: taskqueue.StateReady, taskqueue.StateRetrying: taskqueue.StateReady},
	store.ActRetry:   {taskqueue.StateDead: taskqueue.StateReady, taskqueue.StateCancelled: taskqueue.StateReady},
	store.ActDelete: {
		taskqueue.StateScheduled: 0, taskqueue.StateReady: 0, taskqueue.StateRetrying: 0,
		taskqueue.StateDone: 0, taskqueue.StateDead: 0, taskqueue.StateCancelled: 0,
	},
}

// A pair is one of them, in a queue of its own.
type pair struct {
	*fixture
	what    string
	task    taskqueue.Task
	claimed bool // it has been, since it was last made to run
	run     taskqueue.Info
}

func everyActOnEveryState(f *fixture) {
	n := 0
	for name, option := range pairOptions {
		for setting, set := range pairSettings {
			if setting != "" && name != "plain" && (name != "unique" || setting != "paused") {
				continue
			}
			for state := taskqueue.StateScheduled; state <= taskqueue.StateCancelled; state++ {
				for act := store.ActCancel; act <= store.ActDelete+1; act++ { // the last: Purge
					n++
					what := fmt.Sprintf("act %d on %v, %s, %s", act, state, name, setting)
					p := &pair{fixture: &fixture{f.T, f.s, fmt.Sprint("pair", n), 0}, what: what, task: task("a")}
					option(&p.task)
					p.enter(state)
					p.configure(func(s *taskqueue.Settings) { *s = set })
					p.check(state, act)
				}
			}
		}
	}
}

func (p *pair) claimOne() []taskqueue.Info {
	got := p.claim(1)
	for _, t := range got {
		assert.Greater(p, t.Token, p.run.Token)
		p.run, p.claimed = t, true
	}
	return got
}

// enter brings the task into a state.
func (p *pair) enter(s taskqueue.State) {
	if s == taskqueue.StateScheduled {
		p.task.Delay = time.Hour
	}
	require.Equal(p, taskqueue.Added, p.add(p.task)[0].Verdict)
	switch s {
	case taskqueue.StateScheduled, taskqueue.StateReady:
		return
	case taskqueue.StateCancelled:
		require.True(p, p.act("a", store.ActCancel))
		return
	}
	require.Len(p, p.claimOne(), 1)
	switch s {
	case taskqueue.StateRetrying:
		require.Equal(p, store.Settled, p.settle(p.run, store.Failed, time.Hour))
	case taskqueue.StateDone:
		require.Equal(p, store.Settled, p.settle(p.run, store.Succeeded, 0))
	case taskqueue.StateDead:
		require.Equal(p, store.Settled, p.settle(p.run, store.Buried, 0))
	}
}

// check does the act and looks at everything that can be seen then.
func (p *pair) check(state taskqueue.State, act store.Act) {
	want, does := pairActs[act][state]
	switch {
	case act <= store.ActDelete:
		assert.Equal(p, does, p.act("a", act), p.what)
	case state == taskqueue.StateRunning:
		_, _, err := p.s.Purge(ctx, p.queue, state, "")
		p.invalid(err, p.what)
	default:
		does = true
		assert.Equal(p, 1, p.purge(state), p.what)
	}
	if act == store.ActRetry && does {
		p.claimed = false // it holds its key until it starts again
	}
	if !does {
		want = state
	}
	if want == 0 {
		p.gone("a", p.what)
	} else {
		i := p.get("a")
		assert.Equal(p, want, i.State, p.what)
		assert.Equal(p, act == store.ActCancel && state == taskqueue.StateRunning, i.CancelRequested, p.what)
	}
	p.checkKey(want)
	p.checkRest(want)
}

// checkKey asks for the unique key with another task.
func (p *pair) checkKey(now taskqueue.State) {
	if p.task.UniqueKey == "" {
		return
	}
	other := task("other")
	other.UniqueKey, other.Delay = p.task.UniqueKey, time.Hour
	want := taskqueue.Added
	if now != 0 && !now.Ended() && !(p.claimed && p.task.Until == taskqueue.Start) {
		want = taskqueue.Duplicate
	}
	assert.Equal(p, want, p.add(other)[0].Verdict, p.what)
	if want == taskqueue.Added {
		assert.True(p, p.act("other", store.ActDelete), p.what)
	}
}

// checkRest has the task go on from where it is now, and what it was under end as stale.
func (p *pair) checkRest(now taskqueue.State) {
	stats := p.stats()
	for s, n := range stats.States {
		want := int64(0)
		if s == now {
			want = 1
		}
		assert.Equal(p, want, n, "%s: %v", p.what, s)
	}
	old := p.run
	got := p.claimOne()
	if now != taskqueue.StateReady || stats.Settings.Paused {
		assert.Empty(p, got, p.what)
		return
	}
	require.Len(p, got, 1, p.what)
	if old.Token > 0 {
		assert.Equal(p, store.Stale, p.settle(old, store.Succeeded, 0), p.what)
	}
	require.Equal(p, store.Settled, p.settle(p.run, store.Succeeded, 0), p.what)
	p.what += ", and done"
	p.checkKey(taskqueue.StateDone)
}
