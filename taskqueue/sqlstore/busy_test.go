//go:build unix

package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A counted database counts the messages of the last try of a transaction.
type counted struct {
	database
	messages int
}

type countedTx struct {
	tx
	c *counted
}

func (c *counted) transact(ctx context.Context, m mode, f func(tx) error) error {
	return c.database.transact(ctx, m, func(t tx) error {
		c.messages = 0
		return f(&countedTx{t, c})
	})
}

func (t *countedTx) add(all []query) {
	for i := range all {
		if !all[i].empty() {
			t.c.messages++
			return
		}
	}
}

func (t *countedTx) run(all ...query) error { t.add(all); return t.tx.run(all...) }
func (t *countedTx) end(all ...query) error { t.add(all); return t.tx.end(all...) }

func busyStore(t *testing.T) (s *Store, claim func(n int) []taskqueue.Info) {
	s, err := New(context.Background(), poolOf(t, emptyDatabase(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	nonce := 0
	return s, func(n int) []taskqueue.Info {
		nonce++
		got, err := s.Claim(t.Context(), store.ClaimRequest{Queue: "q", Worker: "w", Nonce: fmt.Sprint("n/", nonce), Max: n, Lease: time.Minute})
		require.NoError(t, err)
		return got.Tasks
	}
}

// A claim of a queue that has more looks and takes in one message, and writes in another. A settle locks in one, and
// writes in another.
func TestABusyClaimSendsTwoMessages(t *testing.T) {
	s, claim := busyStore(t)
	fill(t, s, 30, 0)
	require.Len(t, claim(10), 10)
	c := &counted{database: s.db}
	s.db = c
	got := claim(10)
	assert.Equal(t, 2, c.messages)
	require.Len(t, got, 10)
	for i, one := range got {
		assert.Len(t, one.Payload, 100)
		assert.Equal(t, got[0].Token+int64(i), one.Token)
	}
	var all []store.Outcome
	for _, run := range got {
		all = append(all, store.Outcome{Ref: store.Ref{ID: run.ID, Token: run.Token}, Kind: store.Succeeded})
	}
	results, err := s.Settle(t.Context(), "q", append(all, all[0], store.Outcome{Ref: store.Ref{ID: got[1].ID, Token: 1}, Kind: store.Succeeded}))
	require.NoError(t, err)
	assert.Equal(t, 2, c.messages)
	for _, r := range results[:11] {
		assert.Equal(t, store.Settled, r)
	}
	assert.Equal(t, store.Stale, results[11])
	stats, err := s.Stats(t.Context(), "q")
	require.NoError(t, err)
	assert.EqualValues(t, 10, stats.Counts[taskqueue.CountDone])
	assert.EqualValues(t, 20, stats.Counts[taskqueue.CountClaimed])
}

// The tasks that a busy claim takes with its look are in the order of the classes; none has expired, and they have no more bytes
// than a claim may have.
func TestABusyClaimTakesNothingElse(t *testing.T) {
	s, claim := busyStore(t)
	fill(t, s, 20, 0)
	require.Len(t, claim(5), 5)
	urgent, late := newTask("urgent"), newTask("expired")
	urgent.Priority, late.Priority, late.ExpiresAt = 7, 7, time.Now().Add(-time.Second)
	add(t, s, urgent, late)
	got := claim(5)
	require.Len(t, got, 5)
	assert.Equal(t, "urgent", got[0].ID)
	i, err := s.Get(t.Context(), "q", "expired")
	require.NoError(t, err)
	assert.Equal(t, taskqueue.StateDead, i.State)
	require.Len(t, claim(9), 9)
	for n := range 5 {
		big := newTask(fmt.Sprint("big", n))
		big.Priority, big.Payload = 7, make([]byte, taskqueue.MaxBatchBytes/3)
		add(t, s, big)
	}
	assert.Equal(t, 3, len(claim(5)), "three of them are as much as a claim may have")
	assert.Equal(t, 4, len(claim(5)), "the others, and what is left")
}

// A statement of a few rows is planned once for a connection, and not each time.
func TestStatementsArePlannedOnce(t *testing.T) {
	s, _ := busyStore(t)
	var mode string
	require.NoError(t, s.db.transact(t.Context(), writes, func(tx tx) error {
		var now moment
		return tx.run(query{clock: &now}, row("SHOW plan_cache_mode", nil, &mode))
	}))
	assert.Equal(t, "force_generic_plan", mode)
}

// The tokens of a busy claim are drawn behind its locks: a token that is drawn before may be less than that of another run
// of the task, which was claimed and settled meanwhile.
func TestABusyClaimDrawsItsTokensWhenItHasLocked(t *testing.T) {
	s, claim := busyStore(t)
	for i := range 30 {
		add(t, s, newTask(fmt.Sprint(i)))
	}
	require.Len(t, claim(10), 10)
	var sent []string
	hook(s, func(text string) { sent = append(sent, text) })
	require.Len(t, claim(10), 10)
	locks := slices.Index(sent, pickAheadText)
	require.GreaterOrEqual(t, locks, 0)
	for i, text := range sent {
		assert.False(t, i < locks && strings.Contains(text, "nextval"), text)
	}
}
