package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/locks"
	"github.com/ambit-go/ambit/locks/fence"
	"github.com/ambit-go/ambit/locks/lockstest/servers"
	"github.com/ambit-go/ambit/locks/memstore"
	_ "github.com/ambit-go/ambit/locks/sqlitestore"
)

func manager(t *testing.T) *locks.Manager {
	m, err := locks.New(memstore.New())
	require.NoError(t, err)
	return m
}

func TestARegisterNeverGoesBack(t *testing.T) {
	var r fence.Register
	highest := map[int]int64{}
	for range 10_000 {
		slot, v := rand.IntN(3), rand.Int64N(1000)+1
		err := r.Check(fence.Token{Key: "k", Slot: slot, Value: v})
		if v < highest[slot] {
			var stale *fence.StaleError
			require.ErrorAs(t, err, &stale)
			require.ErrorIs(t, err, fence.ErrStale)
			require.Equal(t, fence.StaleError{Key: "k", Slot: slot, Token: v, Highest: highest[slot]}, *stale)
			continue
		}
		require.NoError(t, err, "two holders of a semaphore at once are legitimate")
		highest[slot] = v
	}
	require.NoError(t, r.Check(fence.Token{Key: "a", Value: 1}), "another key")
	assert.Len(t, r.Seen(), 4)
	assert.Equal(t, fence.Token{Key: "a", Value: 1}, r.Seen()[0])
	r.Forget("k")
	assert.Len(t, r.Seen(), 1)
}

func TestDoWritesWithAGoodTokenAlone(t *testing.T) {
	var r fence.Register
	mine := errors.New("mine")
	require.ErrorIs(t, r.Do(fence.Token{Key: "k", Value: 2}, func() error { return mine }), mine)
	require.ErrorIs(t, r.Do(fence.Token{Key: "k", Value: 1}, func() error { panic("called") }), fence.ErrStale)
	assert.Panics(t, func() { _ = r.Do(fence.Token{Key: "k", Value: 3}, func() error { panic("boom") }) })
	require.ErrorIs(t, r.Check(fence.Token{Key: "k", Value: 2}), fence.ErrStale, "nothing is left locked")
}

func TestTokensGoThroughHeaders(t *testing.T) {
	for _, key := range []string{"k", "invoice/42", "a;b;c", "ü 日本\r\n\x00%2F", strings.Repeat("k", 1000)} {
		want := fence.Token{Key: key, Slot: 7, Value: 1<<53 - 1}
		got, err := fence.Parse(want.String())
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.NotContains(t, want.String(), "\r")
	}
	_, err := fence.Parse("")
	require.ErrorIs(t, err, fence.ErrMissing)
	for _, bad := range []string{"1", "1;2", "1;2;", "x;0;k", "1;x;k", "0;0;k", "-1;0;k", "1;-1;k", "1;0;%zz", "99999999999999999999;0;k"} {
		_, err := fence.Parse(bad)
		require.Error(t, err, bad)
		require.NotErrorIs(t, err, fence.ErrMissing)
	}
}

func TestAServiceBehindHTTPRefusesAStaleWriter(t *testing.T) {
	var r fence.Register
	writes := 0
	s := httptest.NewServer(fence.Require(&r, func(q *http.Request) string { return strings.TrimPrefix(q.URL.Path, "/") },
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { writes++ })))
	defer s.Close()
	m := manager(t)
	client := &http.Client{Transport: fence.Transport(nil)}
	put := func(ctx context.Context, path, header string) int {
		q, err := http.NewRequestWithContext(ctx, http.MethodPut, s.URL+path, strings.NewReader("x"))
		require.NoError(t, err)
		if header != "" {
			q.Header.Set(fence.Header, header)
		}
		resp, err := client.Do(q)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	var old context.Context
	require.NoError(t, m.With(t.Context(), "k", func(ctx context.Context) error {
		assert.Equal(t, http.StatusOK, put(ctx, "/k", ""))
		assert.Equal(t, http.StatusPreconditionFailed, put(ctx, "/another", ""))
		old = context.WithoutCancel(ctx)
		return nil
	}))
	stale := fence.Of(locks.From(old)).String()
	require.NoError(t, m.With(t.Context(), "k", func(ctx context.Context) error {
		assert.Equal(t, http.StatusOK, put(ctx, "/k", ""))
		assert.Equal(t, http.StatusPreconditionFailed, put(ctx, "/k", stale))
		return nil
	}))
	assert.Equal(t, http.StatusPreconditionRequired, put(t.Context(), "/k", ""))
	assert.Equal(t, http.StatusBadRequest, put(t.Context(), "/k", "nonsense"))
	assert.Equal(t, 2, writes)

	q, err := http.NewRequestWithContext(old, http.MethodPut, s.URL, strings.NewReader("x"))
	require.NoError(t, err)
	_, err = client.Do(q)
	require.ErrorIs(t, err, locks.ErrReleased, "it is not even sent")
}

func TestASQLRowKeepsTheGreatestToken(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "user.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.Exec("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER, fence INTEGER)")
	require.NoError(t, err)
	_, err = db.Exec("INSERT INTO account VALUES (1, 0, NULL)")
	require.NoError(t, err)
	for _, step := range []struct {
		token   int64
		changed int64
	}{{5, 1}, {5, 1}, {4, 0}, {6, 1}, {5, 0}} {
		r, err := db.Exec("UPDATE account SET balance = balance + 1, fence = ?1 WHERE id = 1 AND "+fence.SQL("fence", "?1"), step.token)
		require.NoError(t, err)
		n, err := r.RowsAffected()
		require.NoError(t, err)
		assert.Equal(t, step.changed, n, "token %d", step.token)
	}
}

func TestARedisKeyKeepsTheGreatestToken(t *testing.T) {
	o, err := redis.ParseURL(servers.Redis(t).URL)
	require.NoError(t, err)
	rdb := redis.NewClient(o)
	defer func() { require.NoError(t, rdb.Close()) }()
	for _, step := range []struct {
		token int64
		good  bool
	}{{1 << 52, true}, {1 << 52, true}, {1<<52 - 1, false}, {1<<52 + 1, true}, {1 << 52, false}} {
		keys := []string{"{report}", "{report}:fence"}
		ok, err := rdb.Eval(t.Context(), fence.Redis, keys, fence.RedisArgs(fence.Token{Value: step.token}, step.token)...).Bool()
		require.NoError(t, err)
		assert.Equal(t, step.good, ok)
		n, err := rdb.Eval(t.Context(), fence.RedisCheck+"return 1", []string{"{report}:fence2"}, step.token).Int()
		require.NoError(t, err)
		assert.Equal(t, step.good, n == 1)
	}
	last, err := rdb.Get(t.Context(), "{report}").Int64()
	require.NoError(t, err)
	assert.Equal(t, int64(1<<52+1), last)
}

func TestSameNeedsASQLStore(t *testing.T) {
	require.NoError(t, manager(t).With(t.Context(), "k", func(ctx context.Context) error {
		require.ErrorIs(t, fence.Same(ctx, nil, locks.From(ctx)), locks.ErrValidation)
		return nil
	}))
}
