//go:build unix

package sqlstore

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A hooked database calls before with the first statement of each message, before it is sent.
type hooked struct {
	database
	before func(text string)
	apart  bool // each statement is a message
}

type hookedTx struct {
	tx
	*hooked
}

func (h *hooked) transact(ctx context.Context, m mode, f func(tx) error) error {
	return h.database.transact(ctx, m, func(t tx) error { return f(&hookedTx{t, h}) })
}

func (h *hookedTx) tell(all []query) {
	for _, q := range all {
		text := q.text
		if q.bulk != nil && len(q.rows) > 0 {
			text = q.bulk.postgres
		}
		if text != "" {
			h.before(text)
		}
	}
}

func (h *hookedTx) run(all ...query) error {
	if h.apart && len(all) > 1 {
		return errors.Join(h.run(all[0]), h.run(all[1:]...))
	}
	h.tell(all)
	return h.tx.run(all...)
}

func (h *hookedTx) end(all ...query) error { h.tell(all); return h.tx.end(all...) }

// hook has f called before messages of s.
func hook(s *Store, f func(text string)) { s.db = &hooked{s.db, f, false} }

// onceAt calls f the first time that a statement has the text.
func onceAt(part string, f func()) func(string) {
	var done atomic.Bool
	return func(text string) {
		if strings.Contains(text, part) && !done.Swap(true) {
			f()
		}
	}
}

// pgStores opens stores in one empty database of PostgreSQL, each with a pool of its own as processes have.
func pgStores(t *testing.T, n int) (all []*Store, pool *pgxpool.Pool, url string) {
	url = emptyDatabase(t)
	pool = poolOf(t, url)
	for range n {
		s, err := New(t.Context(), poolOf(t, url))
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		all = append(all, s)
	}
	return all, pool, url
}

// configure changes all settings of a queue.
func configure(t *testing.T, s *Store, queue string, set taskqueue.Settings) {
	t.Helper()
	now, err := s.Stats(t.Context(), queue)
	require.NoError(t, err)
	done, err := s.Configure(t.Context(), queue, now.Settings, set)
	require.NoError(t, err)
	require.True(t, done)
}

func keyed(id, key string) taskqueue.Task {
	one := newTask(id)
	one.UniqueKey = key
	return one
}

func add(t *testing.T, s *Store, tasks ...taskqueue.Task) []taskqueue.Result {
	r, err := s.Enqueue(context.Background(), "q", tasks)
	require.NoError(t, err)
	return r
}

func claimAs(s *Store, worker, nonce string, n int, lease time.Duration) (taskqueue.Claimed, error) {
	return s.Claim(context.Background(), store.ClaimRequest{Queue: "q", Worker: worker, Nonce: nonce, Max: n, Lease: lease})
}

func settleAs(t *testing.T, s *Store, kind store.OutcomeKind, runs ...taskqueue.Info) []store.SettleResult {
	var all []store.Outcome
	for _, r := range runs {
		all = append(all, store.Outcome{Ref: store.Ref{ID: r.ID, Token: r.Token}, Kind: kind, Error: "x"})
	}
	res, err := s.Settle(context.Background(), "q", all)
	require.NoError(t, err)
	return res
}

// number is what a query of one number answers.
func number(t *testing.T, pool *pgxpool.Pool, text string, args ...any) (n int64) {
	require.NoError(t, pool.QueryRow(context.Background(), text, args...).Scan(&n), text)
	return n
}

// A hookedUserTx calls before with each statement of a batch.
type hookedUserTx struct {
	pgx.Tx
	before func(string)
}

func (h *hookedUserTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		h.before(q.SQL)
	}
	return h.Tx.SendBatch(ctx, b)
}
