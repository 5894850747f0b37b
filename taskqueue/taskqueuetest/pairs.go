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
	queue   string
	task    taskqueue.Task
	claimed bool // it has been, since it was last made to run
	token   int64
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
					p := &pair{fixture: f, queue: fmt.Sprint("pair", n), task: task("a")}
					p.task.Queue = p.queue
					option(&p.task)
					p.enter(state)
					require.NoError(f, f.q().In(p.queue).Configure(ctx, func(s *taskqueue.Settings) { *s = set }))
					p.check(fmt.Sprintf("act %d on %v, %s, %s", act, state, name, setting), state, act)
				}
			}
		}
	}
}

func (p *pair) enqueue(t taskqueue.Task) taskqueue.Verdict {
	r, err := p.s.Enqueue(ctx, p.queue, []taskqueue.Task{t})
	require.NoError(p, err)
	return r[0].Verdict
}

func (p *pair) claimOne() []taskqueue.Info {
	p.n++
	got, err := p.s.Claim(ctx, store.ClaimRequest{Queue: p.queue, Worker: "w", Nonce: fmt.Sprint(p.n), Max: 1, Lease: time.Hour})
	require.NoError(p, err)
	for _, t := range got.Tasks {
		assert.Greater(p, t.Token, p.token)
		p.token, p.claimed = t.Token, true
	}
	return got.Tasks
}

func (p *pair) end(kind store.OutcomeKind, after time.Duration) {
	r, err := p.s.Settle(ctx, p.queue, []store.Outcome{{Ref: store.Ref{ID: "a", Token: p.token}, Kind: kind, After: after}})
	require.NoError(p, err)
	require.Equal(p, []store.SettleResult{store.Settled}, r)
}

// enter brings the task into a state.
func (p *pair) enter(s taskqueue.State) {
	if s == taskqueue.StateScheduled {
		p.task.Delay = time.Hour
	}
	require.Equal(p, taskqueue.Added, p.enqueue(p.task))
	if s == taskqueue.StateCancelled {
		did, err := p.s.Act(ctx, p.queue, "a", store.ActCancel)
		require.NoError(p, err)
		require.True(p, did)
	}
	if s == taskqueue.StateScheduled || s == taskqueue.StateReady || s == taskqueue.StateCancelled {
		return
	}
	require.Len(p, p.claimOne(), 1)
	switch s {
	case taskqueue.StateRetrying:
		p.end(store.Failed, time.Hour)
	case taskqueue.StateDone:
		p.end(store.Succeeded, 0)
	case taskqueue.StateDead:
		p.end(store.Buried, 0)
	}
}

// check does the act and looks at everything that can be seen then.
func (p *pair) check(what string, state taskqueue.State, act store.Act) {
	want, does := pairActs[act][state]
	if act > store.ActDelete {
		n, _, err := p.s.Purge(ctx, p.queue, state, "")
		if does = state != taskqueue.StateRunning; does {
			assert.Equal(p, 1, n, what)
			require.NoError(p, err, what)
		} else {
			var wrong *taskqueue.InvalidError
			assert.ErrorAs(p, err, &wrong, what)
		}
	} else {
		did, err := p.s.Act(ctx, p.queue, "a", act)
		require.NoError(p, err, what)
		assert.Equal(p, does, did, what)
	}
	if act == store.ActRetry && does {
		p.claimed = false // it holds its key until it starts again
	}
	if !does {
		want = state
	}
	i, err := p.s.Get(ctx, p.queue, "a")
	if want == 0 {
		assert.ErrorIs(p, err, taskqueue.ErrNotFound, what)
	} else {
		require.NoError(p, err, what)
		assert.Equal(p, want, i.State, what)
		assert.Equal(p, act == store.ActCancel && state == taskqueue.StateRunning, i.CancelRequested, what)
	}
	p.checkKey(what, want)
	p.checkRest(what, want)
}

// checkKey asks for the unique key with another task.
func (p *pair) checkKey(what string, now taskqueue.State) {
	if p.task.UniqueKey == "" {
		return
	}
	other := task("other")
	other.Queue, other.UniqueKey, other.Delay = p.queue, p.task.UniqueKey, time.Hour
	want := taskqueue.Added
	if now != 0 && !now.Ended() && !(p.claimed && p.task.Until == taskqueue.Start) {
		want = taskqueue.Duplicate
	}
	assert.Equal(p, want, p.enqueue(other), what)
	if want == taskqueue.Added {
		did, err := p.s.Act(ctx, p.queue, "other", store.ActDelete)
		require.NoError(p, err)
		assert.True(p, did, what)
	}
}

// checkRest has the task go on from where it is now, and what it was under end as stale.
func (p *pair) checkRest(what string, now taskqueue.State) {
	stats, err := p.s.Stats(ctx, p.queue)
	require.NoError(p, err)
	for s, n := range stats.States {
		want := int64(0)
		if s == now {
			want = 1
		}
		assert.Equal(p, want, n, "%s: %v", what, s)
	}
	old := p.token
	got := p.claimOne()
	if now != taskqueue.StateReady || stats.Settings.Paused {
		assert.Empty(p, got, what)
		return
	}
	require.Len(p, got, 1, what)
	if old > 0 {
		r, err := p.s.Settle(ctx, p.queue, []store.Outcome{{Ref: store.Ref{ID: "a", Token: old}, Kind: store.Succeeded}})
		require.NoError(p, err)
		assert.Equal(p, []store.SettleResult{store.Stale}, r, what)
	}
	p.end(store.Succeeded, 0)
	p.checkKey(what+", and done", taskqueue.StateDone)
}
