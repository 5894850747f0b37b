package taskqueuetest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

func wholeBatch(f *fixture) {
	many := make([]taskqueue.Task, taskqueue.MaxBatch+1)
	for i := range many {
		many[i] = task(string(rune('a' + i)))
	}
	_, err := f.s.Enqueue(ctx, queue, many)
	f.invalid(err)
	assert.Empty(f, f.claim(1))
}

func limitInvalid(f *fixture) {
	l := taskqueue.Limit{Key: "k", Concurrency: 1}
	f.limit(l)
	for what, bad := range map[string]taskqueue.Limit{
		"neither": {Concurrency: 1}, "both": {Key: "k", Type: "t", Concurrency: 1}, "long": {Key: strings.Repeat("k", 300), Concurrency: 1},
		"zero byte": {Type: "\x00", Concurrency: 1}, "concurrency": {Key: "k", Concurrency: -1}, "rate": {Key: "k", Rate: -1},
		"small rate": {Key: "k", Rate: 1e-10}, "burst": {Key: "k", Rate: 1, Burst: -1}, "burst alone": {Key: "k", Concurrency: 1, Burst: 2},
	} {
		f.invalid(f.s.SetLimit(ctx, queue, bad), what)
	}
	assert.Equal(f, []taskqueue.Limit{l}, f.stats().Limits)
	for _, key := range []string{"k*", "a\x00b", strings.Repeat("k", 300)} {
		_, err := f.s.Enqueue(ctx, queue, []taskqueue.Task{keyed("a", key)})
		f.invalid(err, "%q", key)
	}
	f.counts(0, taskqueue.StateReady)
}

// wrongTasks are what no task may be.
var wrongTasks = map[string]func(*taskqueue.Task){
	"no type":                 func(t *taskqueue.Task) { t.Type = "" },
	"no id":                   func(t *taskqueue.Task) { t.ID = "" },
	"a long id":               func(t *taskqueue.Task) { t.ID = string(make([]byte, 300)) },
	"an id of other bytes":    func(t *taskqueue.Task) { t.ID = "\xff" },
	"a class too many":        func(t *taskqueue.Task) { t.Priority = taskqueue.Priorities },
	"an Until too many":       func(t *taskqueue.Task) { t.Until = 2 },
	"a delay of ages":         func(t *taskqueue.Task) { t.Delay = math.MaxInt64 },
	"a time after all times":  func(t *taskqueue.Task) { t.RunAt = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC) },
	"an expiry after all":     func(t *taskqueue.Task) { t.ExpiresAt = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC) },
	"a time before all":       func(t *taskqueue.Task) { t.RunAt = time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC) },
	"a retention of ages":     func(t *taskqueue.Task) { t.Retention = math.MaxInt64 },
	"two times":               func(t *taskqueue.Task) { t.Delay, t.RunAt = 1, time.Now() },
	"a negative retention":    func(t *taskqueue.Task) { t.Retention = -1 },
	"more failures than 16 b": func(t *taskqueue.Task) { t.MaxFailures = 1 << 16 },
	"more crashes than 8 bit": func(t *taskqueue.Task) { t.MaxCrashes = 1 << 8 },
	"headers that are bytes":  func(t *taskqueue.Task) { t.Headers = map[string]string{"a": "\xff"} },
	"long headers":            func(t *taskqueue.Task) { t.Headers = map[string]string{"a": string(make([]byte, 100<<10))} },
	"a payload of 5 MiB":      func(t *taskqueue.Task) { t.Payload = make([]byte, 5<<20) },
}

func invalidRequests(f *fixture) {
	f.add(task("there"))
	wrong := func(what string, err error) { f.Helper(); f.invalid(err, what) }
	for what, change := range wrongTasks {
		t := task("wrong")
		change(&t)
		_, err := f.s.Enqueue(ctx, queue, []taskqueue.Task{task("right"), t})
		wrong(what, err)
		_, err = f.s.Tick(ctx, taskqueue.Tick{Queue: queue, Name: "n", Schedule: "@daily", At: time.Now(), Task: t})
		wrong(what, err)
	}
	for _, r := range []store.ClaimRequest{{Queue: queue, Lease: time.Second}, {Queue: queue, Worker: "w"}, {Queue: queue, Worker: "w", Lease: math.MaxInt64}} {
		_, err := f.s.Claim(ctx, r)
		wrong("claim", err)
	}
	_, err := f.s.Extend(ctx, store.ExtendRequest{Queue: queue, Worker: "w", Lease: time.Second, Progress: map[string][]byte{"there": make([]byte, 5<<20)}})
	wrong("progress", err)
	_, err = f.s.Extend(ctx, store.ExtendRequest{Queue: queue, Worker: "w", Lease: time.Second, Refs: make([]store.Ref, 1001)})
	wrong("refs", err)
	_, err = f.s.Settle(ctx, queue, []store.Outcome{{Ref: store.Ref{ID: "there"}}})
	wrong("no kind", err)
	_, err = f.s.Settle(ctx, queue, []store.Outcome{{Ref: store.Ref{ID: "there"}, Kind: store.Succeeded, Result: make([]byte, 5<<20)}})
	wrong("result", err)
	_, err = f.s.Settle(ctx, queue, make([]store.Outcome, 1001))
	wrong("outcomes", err)
	for _, set := range []taskqueue.Settings{{Rate: math.Inf(1)}, {Rate: math.NaN()}, {Rate: -1}, {Rate: 1e-9}, {Burst: -1}, {Concurrency: -1}, {MaxDead: -1}, {DeadRetention: -1}} {
		wrong(fmt.Sprint(set), f.q().Configure(ctx, func(s *taskqueue.Settings) { *s = set }))
	}
	_, _, err = f.s.Purge(ctx, queue, taskqueue.StateRunning, "")
	wrong("purge", err)

	assert.Equal(f, taskqueue.Settings{}, f.stats().Settings)
	assert.EqualValues(f, 1, f.stats().Counts[taskqueue.CountAdded], "nothing was changed")
	all, err := f.s.Periodic(ctx, queue)
	require.NoError(f, err)
	assert.Empty(f, all)
}
