package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/ledger"
	"github.com/ambit-go/ambit/taskqueue/cmd/internal/chaos/plan"
	"github.com/ambit-go/ambit/taskqueue/memstore"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// run has tasks of all plans run on a store, over what lies says of it, and returns
// what the auditor is to look at.
func run(t *testing.T, lies func(taskqueue.Store) taskqueue.Store) *Case {
	dir := t.TempDir()
	journal := func(name string) *ledger.Journal {
		j, err := ledger.Create(dir, name)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, j.Close()) })
		return j
	}
	below := memstore.New()
	above := lies(below)
	producer := journal("producer")
	q, err := taskqueue.New(above)
	require.NoError(t, err)
	work, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for i := range 2 {
		j := journal(fmt.Sprint("worker", i))
		wq, err := taskqueue.New(&ledger.Recorder{Store: above, Journal: j})
		require.NoError(t, err)
		all.Go(func() {
			p := &plan.Player{Journal: j, Places: 4}
			assert.NoError(t, wq.Work(work, p.Handlers(), taskqueue.Concurrency(4), taskqueue.Lease(time.Second), taskqueue.ShutdownGrace(time.Minute)))
			assert.NoError(t, j.Write(ledger.Entry{Kind: ledger.Returned}))
		})
	}
	require.NoError(t, below.SetLimit(t.Context(), taskqueue.DefaultQueue, plan.Limit))
	rng := rand.New(rand.NewPCG(1, 2))
	var earlier []string
	for i := range 300 {
		task := plan.Draw(rng, fmt.Sprintf("t%03d", i), false)
		if i%3 == 0 {
			task.Delay = time.Duration(rng.IntN(5000)) * time.Millisecond
		}
		if i%5 == 0 {
			task.UniqueKey = fmt.Sprint("key", rng.IntN(5))
		} else if task.ID != "t052" { // some have that do what is wrong
			earlier = append(earlier, task.ID)
		}
		plan.Relate(rng, &task, earlier[max(len(earlier)-20, 0):max(len(earlier)-1, 0)])
		require.NoError(t, producer.Write(ledger.Entry{Kind: ledger.Trying, ID: task.ID, Task: &task}))
		began := ledger.Now()
		time.Sleep(time.Millisecond)
		r, err := q.EnqueueAll(t.Context(), []taskqueue.Task{task})
		if wrong := new(taskqueue.InvalidError); errors.As(err, &wrong) && wrong.What == "After" {
			require.NoError(t, producer.Write(ledger.Entry{Kind: ledger.Refused, ID: task.ID, Text: err.Error()}))
			continue
		}
		require.NoError(t, err)
		holder := ""
		if r[0].Verdict == taskqueue.Duplicate {
			holder = r[0].ID
		}
		time.Sleep(time.Millisecond)
		require.NoError(t, producer.WriteSynced(ledger.Entry{Kind: ledger.Added, Began: began, ID: task.ID, Verdict: r[0].Verdict, Holder: holder}))
	}
	for range 600 { // a fault may keep a task from ending
		time.Sleep(time.Second)
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		if s.States[taskqueue.StateScheduled]+s.States[taskqueue.StateReady]+s.States[taskqueue.StateRunning]+s.States[taskqueue.StateRetrying] == 0 {
			break
		}
	}
	stop()
	all.Wait()
	c := new(Case)
	c.Entries, err = ledger.Read(dir)
	require.NoError(t, err)
	require.NoError(t, c.Load(t.Context(), below, taskqueue.DefaultQueue))
	return c
}

// liar is a store that is wrong in one way.
type liar struct {
	taskqueue.Store
	enqueue func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error)
	claim   func(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error)
	settle  func(ctx context.Context, queue string, all []store.Outcome) ([]store.SettleResult, error)
	extend  func(ctx context.Context, r store.ExtendRequest) ([]store.ExtendResult, error)
}

func (l *liar) Enqueue(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
	if l.enqueue != nil {
		return l.enqueue(ctx, queue, tasks)
	}
	return l.Store.Enqueue(ctx, queue, tasks)
}

func (l *liar) Claim(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error) {
	if l.claim != nil {
		return l.claim(ctx, r)
	}
	return l.Store.Claim(ctx, r)
}

func (l *liar) Settle(ctx context.Context, queue string, all []store.Outcome) ([]store.SettleResult, error) {
	if l.settle != nil {
		return l.settle(ctx, queue, all)
	}
	return l.Store.Settle(ctx, queue, all)
}

func (l *liar) Extend(ctx context.Context, r store.ExtendRequest) ([]store.ExtendResult, error) {
	if l.extend != nil {
		return l.extend(ctx, r)
	}
	return l.Store.Extend(ctx, r)
}

func TestAStoreThatIsRightHasNoFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := run(t, func(s taskqueue.Store) taskqueue.Store { return s })
		r := Check(c)
		assert.Empty(t, r.Faults)
		assert.Greater(t, r.Acknowledged, 200)
		assert.Greater(t, r.Runs, r.Acknowledged)
	})
}

// Each fault that is planted is found, by what it is.
func TestTheAuditorSeesPlantedFaults(t *testing.T) {
	var mu sync.Mutex
	for name, planted := range map[string]struct {
		lie  func(s taskqueue.Store) *liar
		want string
	}{
		"an enqueue is dropped": {want: "was acknowledged, and is lost", lie: func(s taskqueue.Store) *liar {
			n := 0
			return &liar{enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				if n++; n == 100 {
					return []taskqueue.Result{{Verdict: taskqueue.Added, ID: tasks[0].ID}}, nil
				}
				return s.Enqueue(ctx, queue, tasks)
			}}
		}},
		"a task is there that nobody has added": {want: "nobody has added it", lie: func(s taskqueue.Store) *liar {
			n := 0
			return &liar{enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				if n++; n == 100 {
					other := tasks[0]
					other.ID, other.UniqueKey = "invented", ""
					tasks = append(tasks, other)
				}
				r, err := s.Enqueue(ctx, queue, tasks)
				return r[:1], err
			}}
		}},
		"a payload is another's": {want: "R2: task", lie: func(s taskqueue.Store) *liar {
			return &liar{enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				if tasks[0].ID == "t052" {
					tasks[0].Payload = []byte("another's")
				}
				return s.Enqueue(ctx, queue, tasks)
			}}
		}},
		"a unique key is not looked at": {want: "R5: the unique key", lie: func(s taskqueue.Store) *liar {
			return &liar{enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				tasks[0].UniqueKey = ""
				return s.Enqueue(ctx, queue, tasks)
			}}
		}},
		"a unique key is never free": {want: "after it had ended", lie: func(s taskqueue.Store) *liar {
			holder := map[string]string{}
			return &liar{enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				key := tasks[0].UniqueKey
				if holder[key] != "" {
					return []taskqueue.Result{{Verdict: taskqueue.Duplicate, ID: holder[key]}}, nil
				}
				r, err := s.Enqueue(ctx, queue, tasks)
				if key != "" {
					holder[key] = tasks[0].ID
				}
				return r, err
			}}
		}},
		"an outcome is acknowledged, and not kept": {want: "after it had ended with token", lie: func(s taskqueue.Store) *liar {
			n := 0
			return &liar{settle: func(ctx context.Context, queue string, all []store.Outcome) ([]store.SettleResult, error) {
				mu.Lock()
				defer mu.Unlock()
				if all[0].Kind == store.Succeeded {
					if n++; n == 30 {
						o := all[0]
						o.Kind = store.Failed
						return s.Settle(ctx, queue, append([]store.Outcome{o}, all[1:]...))
					}
				}
				return s.Settle(ctx, queue, all)
			}}
		}},
		"whoever settles is believed": {want: "R4: task", lie: func(s taskqueue.Store) *liar {
			return &liar{
				extend: func(ctx context.Context, r store.ExtendRequest) ([]store.ExtendResult, error) {
					results := make([]store.ExtendResult, len(r.Refs))
					for i := range results {
						results[i] = store.Extended // and it is not
					}
					return results, nil
				},
				settle: func(ctx context.Context, queue string, all []store.Outcome) ([]store.SettleResult, error) {
					r, err := s.Settle(ctx, queue, all)
					for i := range r {
						r[i] = store.Settled
					}
					return r, err
				},
			}
		}},
		"a lease is not extended": {want: "R8: the run of task", lie: func(s taskqueue.Store) *liar {
			return &liar{extend: func(ctx context.Context, r store.ExtendRequest) ([]store.ExtendResult, error) {
				results := make([]store.ExtendResult, len(r.Refs))
				for i := range results {
					results[i] = store.Extended
				}
				return results, nil
			}}
		}},
		"a task is handed out early": {want: "before its time", lie: func(s taskqueue.Store) *liar {
			return &liar{claim: func(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error) {
				got, err := s.Claim(ctx, r)
				got.Now = got.Now.Add(-50 * time.Millisecond)
				return got, err
			}}
		}},
		"nothing is waited for": {want: "after which it was to run, was done", lie: func(s taskqueue.Store) *liar {
			return &liar{enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				tasks[0].After, tasks[0].OnFailed = nil, ""
				return s.Enqueue(ctx, queue, tasks)
			}}
		}},
		"what has failed is waited for no more": {want: "after which it was to run, is dead", lie: func(s taskqueue.Store) *liar {
			return &liar{enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				if len(tasks[0].After) > 0 {
					tasks[0].OnFailed = taskqueue.OnFailedRun
				}
				return s.Enqueue(ctx, queue, tasks)
			}}
		}},
		"a task waits where it was to go on": {want: "has not ended: it is waiting", lie: func(s taskqueue.Store) *liar {
			return &liar{enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				if len(tasks[0].After) > 0 {
					tasks[0].OnFailed = taskqueue.OnFailedWait
				}
				return s.Enqueue(ctx, queue, tasks)
			}}
		}},
		"a limit is not kept": {want: "had leases at a time", lie: func(s taskqueue.Store) *liar {
			return &liar{enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				tasks[0].LimitKey = ""
				return s.Enqueue(ctx, queue, tasks)
			}}
		}},
		"a delay is cut to seconds": {want: "was due", lie: func(s taskqueue.Store) *liar {
			return &liar{enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				tasks[0].Delay = tasks[0].Delay.Truncate(time.Second)
				return s.Enqueue(ctx, queue, tasks)
			}}
		}},
		"a token is given twice": {want: "R3: token", lie: func(s taskqueue.Store) *liar {
			done := map[string]bool{}
			return &liar{claim: func(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error) {
				got, err := s.Claim(ctx, r)
				mu.Lock()
				defer mu.Unlock()
				for i, one := range got.Tasks {
					if id := one.ID; (id == "t052" || id == "t101") && !done[id] {
						done[id] = true
						got.Tasks[i].Token = 7
					}
				}
				return got, err
			}}
		}},
		"a task does not end": {want: "has not ended", lie: func(s taskqueue.Store) *liar {
			return &liar{enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				if tasks[0].ID == "t052" {
					tasks[0].Delay = 1000 * time.Hour
				}
				return s.Enqueue(ctx, queue, tasks)
			}}
		}},
		"a task ends without having run": {want: "of which no handler has ended well", lie: func(s taskqueue.Store) *liar {
			return &liar{claim: func(ctx context.Context, r store.ClaimRequest) (taskqueue.Claimed, error) {
				got, err := s.Claim(ctx, r)
				kept := got.Tasks[:0]
				for _, one := range got.Tasks {
					if one.ID == "t052" {
						_, _ = s.Settle(ctx, r.Queue, []store.Outcome{{Ref: store.Ref{ID: one.ID, Token: one.Token}, Kind: store.Succeeded}})
					} else {
						kept = append(kept, one)
					}
				}
				got.Tasks = kept
				return got, err
			}}
		}},
		"failures are invented": {want: "its handlers only", lie: func(s taskqueue.Store) *liar {
			return &liar{settle: func(ctx context.Context, queue string, all []store.Outcome) ([]store.SettleResult, error) {
				for i := range all {
					if all[i].Kind == store.Snoozed {
						all[i].Kind = store.Failed
					}
				}
				return s.Settle(ctx, queue, all)
			}}
		}},
		"a task that is forgotten": {want: "was gone", lie: func(s taskqueue.Store) *liar {
			return &liar{settle: func(ctx context.Context, queue string, all []store.Outcome) ([]store.SettleResult, error) {
				r, err := s.Settle(ctx, queue, all)
				if err == nil && all[0].Kind == store.Succeeded {
					_, _ = s.Act(ctx, queue, all[0].ID, store.ActDelete)
					r[0] = store.Gone
				}
				return r, err
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := run(t, func(s taskqueue.Store) taskqueue.Store {
					l := planted.lie(s)
					l.Store = s
					return l
				})
				assert.Contains(t, strings.Join(Check(c).Faults, "\n"), planted.want)
			})
		})
	}
}

// Faults that one entry, or one figure, shows by itself.
func TestTheAuditorSeesFaultsInWhatIsWrittenDown(t *testing.T) {
	ok := plan.OK.Task(rand.New(rand.NewPCG(1, 2)), "a")
	poison := plan.Poison.Task(rand.New(rand.NewPCG(1, 2)), "a")
	cancelled := ok
	for name, one := range map[string]struct {
		task    taskqueue.Task
		state   taskqueue.State
		entries []ledger.Entry
		stored  []string
		left    []string
		want    string
	}{
		"what a store says of itself":   {task: ok, stored: []string{"an entry is left over"}, want: "R1, R2, R5: an entry is left over"},
		"a key that is left over":       {task: ok, left: []string{"tq:{chaos}:p"}, want: "tq:{chaos}:p is left over"},
		"what a process has found":      {task: ok, entries: []ledger.Entry{{Kind: ledger.Fault, At: 9, Text: "5 handlers run in 4 places"}}, want: "5 handlers"},
		"a handler after Work":          {task: ok, entries: []ledger.Entry{{Kind: ledger.Returned, At: 50}, {Kind: ledger.Believes, At: 51, ID: "a", Token: 10}}, want: "after Work had returned"},
		"a lost run that is settled":    {task: ok, entries: []ledger.Entry{{Kind: ledger.Ended, At: 51, ID: "a", Token: 9, Lost: true, Text: "lost"}, {Kind: ledger.Settling, At: 52, ID: "a", Token: 9}}, want: "had lost its lease, and was settled"},
		"two runs that settle":          {task: ok, entries: []ledger.Entry{{Kind: ledger.Settled, At: 51, Began: 50, ID: "a", Token: 9, Outcome: store.Succeeded, Answer: store.Settled}}, want: "was settled twice"},
		"a killer that runs too often":  {task: poison, state: taskqueue.StateDead, entries: []ledger.Entry{{Kind: ledger.Started, At: 20, ID: "a", Token: 7}, {Kind: ledger.Started, At: 21, ID: "a", Token: 8}, {Kind: ledger.Started, At: 22, ID: "a", Token: 9}}, want: "R9: task a"},
		"a cancelled task that is dead": {task: cancelled, state: taskqueue.StateDead, entries: []ledger.Entry{{Kind: ledger.Cancelled, At: 6, ID: "a"}}, want: "was cancelled, and is dead"},
		"an enqueue nobody knows of":    {task: ok, entries: []ledger.Entry{{Kind: ledger.Trying, At: 6, ID: "b", Task: &ok}}, want: "its enqueue was not repeated"},
	} {
		t.Run(name, func(t *testing.T) {
			state := one.state
			if state == 0 {
				state = taskqueue.StateDone
			}
			c := &Case{Stored: one.stored, Left: one.left, Tasks: map[string]taskqueue.Info{"a": {Task: one.task, State: state, Token: 10}}}
			if name == "an enqueue nobody knows of" {
				c.Tasks["b"] = taskqueue.Info{Task: one.task, State: state}
			}
			c.Entries = append([]ledger.Entry{
				{Kind: ledger.Trying, At: 1, By: "p", ID: "a", Task: &one.task},
				{Kind: ledger.Added, At: 3, Began: 2, By: "p", ID: "a", Verdict: taskqueue.Added},
				{Kind: ledger.Claimed, At: 11, Began: 10, By: "w", ID: "a", Token: 10, Now: 5, Due: 5},
				{Kind: ledger.Started, At: 12, By: "w", ID: "a", Token: 10},
				{Kind: ledger.Ended, At: 13, By: "w", ID: "a", Token: 10},
				{Kind: ledger.Settling, At: 14, By: "w", ID: "a", Token: 10, Outcome: store.Succeeded},
				{Kind: ledger.Settled, At: 15, Began: 13, By: "w", ID: "a", Token: 10, Outcome: store.Succeeded, Answer: store.Settled},
			}, one.entries...)
			for i := range c.Entries[7:] {
				c.Entries[7+i].By = "w"
			}
			assert.Contains(t, strings.Join(Check(c).Faults, "\n"), one.want)
		})
	}
}

// In a time in which steps may get lost an acknowledged task may, and only then.
func TestWhatMayBeLostIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("")
		c := run(t, func(s taskqueue.Store) taskqueue.Store {
			return &liar{Store: s, enqueue: func(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
				if tasks[0].ID == "t052" {
					lost = nil
					return []taskqueue.Result{{Verdict: taskqueue.Added, ID: tasks[0].ID}}, nil
				}
				return s.Enqueue(ctx, queue, tasks)
			}}
		})
		require.NoError(t, lost)
		assert.Len(t, Check(c).Faults, 1)
		for _, e := range c.Entries {
			if e.ID == "t052" && e.Kind == ledger.Added {
				c.Losses = []Span{{e.At - 1, e.At + 1}}
			}
		}
		r := Check(c)
		assert.Empty(t, r.Faults)
		assert.Equal(t, 1, r.Lost)
	})
}
