package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/btree"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/engine"
)

// counted is a db that counts what its steps read and write. The store in a file does
// the same steps.
type counted struct {
	*db
	n int
}

func (c *counted) Do(ctx context.Context, f func(engine.Tx) error) error {
	return c.db.Do(ctx, func(tx engine.Tx) error { return f(&countedTx{tx, &c.n}) })
}

type countedTx struct {
	engine.Tx
	n *int
}

func (c *countedTx) Get(key []byte) []byte { *c.n++; return c.Tx.Get(key) }
func (c *countedTx) Put(key, value []byte) { *c.n++; c.Tx.Put(key, value) }
func (c *countedTx) Delete(key []byte)     { *c.n++; c.Tx.Delete(key) }

func (c *countedTx) Scan(from []byte, f func(key, value []byte) bool) {
	c.Tx.Scan(from, func(k, v []byte) bool { *c.n++; return f(k, v) })
}

func (c *countedTx) ScanBack(before []byte, f func(key, value []byte) bool) {
	c.Tx.ScanBack(before, func(k, v []byte) bool { *c.n++; return f(k, v) })
}

// costs returns how many entries each step on one of n tasks touches.
func costs(t *testing.T, n int) map[string]int {
	c := &counted{db: &db{m: btree.NewMap[string, []byte](0)}}
	s, err := engine.Open(t.Context(), c, nil)
	require.NoError(t, err)
	add := func(id string, delay time.Duration) {
		task := taskqueue.Task{ID: id, Type: "t", Delay: delay, MaxFailures: 1, MaxCrashes: 1, UniqueKey: id, Retention: time.Hour}
		_, err := s.Enqueue(t.Context(), "q", []taskqueue.NewTask{{Task: task}})
		require.NoError(t, err)
	}
	nonce := 0
	claim := func(n int) []taskqueue.Info {
		nonce++
		got, err := s.Claim(t.Context(), taskqueue.ClaimRequest{Queue: "q", Worker: "w", Nonce: fmt.Sprint(nonce), Max: n, Lease: time.Hour})
		require.NoError(t, err)
		return got.Tasks
	}
	settle := func(run taskqueue.Info, k taskqueue.OutcomeKind) {
		_, err := s.Settle(t.Context(), "q", []taskqueue.Outcome{{Ref: taskqueue.Ref{ID: run.ID, Token: run.Token}, Kind: k}})
		require.NoError(t, err)
	}
	for _, end := range []taskqueue.OutcomeKind{taskqueue.Succeeded, taskqueue.Buried} {
		for i := range n {
			add(fmt.Sprint(end, i), 0)
		}
		for range n {
			settle(claim(1)[0], end)
		}
	}
	for i := range n {
		add(fmt.Sprint("runs", i), 0)
	}
	for range n {
		require.Len(t, claim(1), 1)
	}
	for i := range n {
		add(fmt.Sprint("ready", i), 0)
		add(fmt.Sprint("later", i), time.Hour)
	}
	cost := map[string]int{}
	of := func(step string, f func()) {
		c.n = 0
		f()
		cost[step] = c.n
	}
	of("enqueue", func() { add("one", 0) })
	var runs []taskqueue.Info
	of("claim", func() { runs = claim(2) })
	require.Len(t, runs, 2)
	of("extend", func() {
		_, err := s.Extend(t.Context(), taskqueue.ExtendRequest{Queue: "q", Worker: "w", Lease: time.Hour, Refs: []taskqueue.Ref{{ID: runs[0].ID, Token: runs[0].Token}}})
		require.NoError(t, err)
	})
	of("settle", func() { settle(runs[0], taskqueue.Succeeded) })
	of("fail", func() { settle(runs[1], taskqueue.Failed) })
	of("cancel", func() {
		ok, err := s.Act(t.Context(), "q", fmt.Sprint("later", n-1), taskqueue.ActCancel)
		require.NoError(t, err)
		require.True(t, ok)
	})
	return cost
}

// asynq 389, rq 472: what took one job looked at all of them.
func TestAsynq389RQ472NoStepLooksAtEveryTask(t *testing.T) {
	few, many := costs(t, 10), costs(t, 500)
	for step, n := range few {
		assert.Positive(t, n, step)
		assert.LessOrEqual(t, many[step], n+1, "%s touches %d entries with 10 tasks in each state, %d with 500", step, n, many[step])
	}
}
