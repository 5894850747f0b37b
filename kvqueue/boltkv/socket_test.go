package boltkv_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/boltkv"
)

func dial(t *testing.T, path string) *boltkv.Client {
	t.Helper()
	c, err := boltkv.Dial(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestTheSocketIsTheUsersOwnAndGoesWithTheFile(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	info, err := os.Stat(path + ".sock")
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, s.Close())
	_, err = os.Stat(path + ".sock")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = boltkv.Dial(path)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "no process answers")
}

func TestASocketThatAKilledProcessHasLeftIsReplaced(t *testing.T) {
	path := newPath(t)
	kill, _ := held(t, path)
	kill()
	openFile(t, path)
	dial(t, path)
}

func TestAClientDoesWhatTheStoreDoes(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	c := dial(t, path)
	assert.Equal(t, s.Limits(), c.Limits())
	key := []byte{0, 0xff, 'k'}
	rev, err := c.Commit(t.Context(), []kvqueue.Guard{{Key: key, Is: kvqueue.Absent}}, []kvqueue.Write{{Key: key, Value: []byte("v")}, {Key: []byte("other")}})
	require.NoError(t, err)
	for _, kv := range []kvqueue.KV{s, c} {
		results, at, err := kv.Read(t.Context(), kvqueue.Range{Begin: key}, kvqueue.Range{Begin: []byte{0}, End: []byte{0xff}, Limit: 1})
		require.NoError(t, err)
		assert.Equal(t, rev, at)
		assert.Equal(t, []kvqueue.Pair{{Key: key, Value: []byte("v"), Rev: rev}}, results[0].Pairs)
		assert.True(t, results[1].More)
	}
	at, err := c.Commit(t.Context(), []kvqueue.Guard{{Key: key, Is: kvqueue.Absent}}, []kvqueue.Write{{Key: key}})
	require.ErrorIs(t, err, kvqueue.ErrConflict)
	assert.Equal(t, rev, at)
	var wrong *kvqueue.InvalidError
	_, err = c.Commit(t.Context(), nil, make([]kvqueue.Write, 129))
	require.ErrorAs(t, err, &wrong)
	assert.Contains(t, wrong.Why, "129 writes")
	_, err = c.Commit(t.Context(), nil, []kvqueue.Write{{Key: make([]byte, 20_000)}})
	require.ErrorAs(t, err, &wrong)
}

func TestASessionOfAClientEndsWithItsTTL(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	c := dial(t, path)
	var x kvqueue.Session
	var rev kvqueue.Rev
	for ttl := 600 * time.Millisecond; ; ttl *= 2 { // it may have ended before the key is put
		var err error
		x, err = c.Session(t.Context(), ttl)
		require.NoError(t, err)
		renewed := x.Renew(t.Context())
		rev, err = c.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("leased"), Session: x}})
		if errors.Is(err, kvqueue.ErrConflict) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, renewed)
		break
	}
	require.NoError(t, c.Close()) // it would have, had its process been killed
	gone := false
	for e, err := range s.Watch(t.Context(), rev, []byte("leased")) {
		require.NoError(t, err)
		gone = e.Deleted
		break
	}
	require.True(t, gone)
	c = dial(t, path)
	other, err := c.Session(t.Context(), time.Hour)
	require.NoError(t, err)
	assert.Greater(t, other.ID(), x.ID())
	require.NoError(t, other.End(t.Context()))
	require.NoError(t, other.End(t.Context()))
	require.ErrorIs(t, other.Renew(t.Context()), kvqueue.ErrSessionLost)
	_, err = c.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("leased"), Session: other}})
	require.ErrorIs(t, err, kvqueue.ErrConflict)
	_, err = c.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("leased"), Session: x}})
	require.ErrorIs(t, err, kvqueue.ErrConflict, "of another client")
}

func TestAWatchOfAClientShowsEachChangeUntilItEnds(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	c := dial(t, path)
	first, err := s.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("w/0")}})
	require.NoError(t, err)
	go func() {
		for i := range 99 {
			_, _ = s.Commit(context.Background(), nil, []kvqueue.Write{{Key: fmt.Appendf(nil, "w/%d", i+1), Value: fmt.Append(nil, i)}, {Key: []byte("unseen")}})
		}
	}()
	n := 0
	for e, err := range c.Watch(t.Context(), first-1, []byte("w/")) {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("w/%d", n), string(e.Key))
		if n++; n == 100 {
			break
		}
	}
	for _, err := range c.Watch(t.Context(), 0, []byte("w/")) {
		require.ErrorIs(t, err, kvqueue.ErrCompacted)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range c.Watch(ctx, first, []byte("w/")) {
		t.Error("it has ended")
	}
}

func TestManyProcessesConsumeOneFile(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path, boltkv.NoSync())
	const items = 400
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	seen := map[string]int{}
	var all sync.WaitGroup
	for range 4 {
		q := openQueue(t, dial(t, path))
		all.Go(func() {
			_ = q.Consume(ctx, 4, 3, func(_ context.Context, batch []kvqueue.Item) error {
				mu.Lock()
				defer mu.Unlock()
				for _, i := range batch {
					if seen[string(i.Value)]++; len(seen) == items {
						stop()
					}
				}
				return nil
			})
		})
	}
	in := []*kvqueue.Queue{openQueue(t, s), openQueue(t, dial(t, path))}
	for i := range items {
		_, err := in[i%2].Enqueue(t.Context(), fmt.Append(nil, i))
		require.NoError(t, err)
	}
	all.Wait()
	for value, n := range seen {
		assert.Equal(t, 1, n, value)
	}
}

func TestCallsFailWhenTheProcessThatHasTheFileIsKilled(t *testing.T) {
	path := newPath(t)
	kill, _ := held(t, path)
	c := dial(t, path)
	ended := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		first := true
		for _, err := range c.Watch(context.Background(), 0, []byte("k")) {
			if err != nil && first {
				close(ready) // what was changed before is not known
			}
			first = false
		}
		for _, err := range c.Watch(context.Background(), 1<<40, []byte("k")) {
			ended <- err
		}
	}()
	<-ready
	kill()
	require.ErrorIs(t, <-ended, boltkv.ErrGone)
	_, _, err := c.Read(t.Context(), kvqueue.Range{Begin: []byte("k")})
	require.ErrorIs(t, err, boltkv.ErrGone)
	_, err = c.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("k")}})
	require.ErrorIs(t, err, boltkv.ErrGone)
	require.NotErrorIs(t, err, kvqueue.ErrUnknown, "it was not sent")
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	_, err = c.Session(t.Context(), time.Second)
	require.ErrorIs(t, err, boltkv.ErrGone)
}

func TestWhoSharesAFileTakesItOver(t *testing.T) {
	path := newPath(t)
	kill, _ := held(t, path)
	s, err := boltkv.Share(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	assert.False(t, s.Own())
	q := openQueue(t, s)
	_, err = q.Enqueue(t.Context(), []byte("a"), []byte("b"))
	require.NoError(t, err)
	err = q.Do(t.Context(), 1, func(ctx context.Context, items []kvqueue.Item) error {
		assert.Equal(t, "a", string(items[0].Value))
		kill()
		<-ctx.Done() // sessions end with the process that had the file
		return nil
	})
	require.ErrorIs(t, err, kvqueue.ErrLost)
	assert.True(t, s.Own())
	assert.ElementsMatch(t, []string{"a", "b"}, drainAll(t, q, 2))
	other, err := boltkv.Share(t.Context(), path)
	require.NoError(t, err)
	assert.False(t, other.Own())
	require.NoError(t, other.Close())
	_, _, err = other.Read(t.Context(), kvqueue.Range{Begin: []byte("k")})
	require.ErrorIs(t, err, kvqueue.ErrClosed)
}

// drainAll takes so many items, those that have to come back among them.
func drainAll(t *testing.T, q *kvqueue.Queue, n int) (values []string) {
	t.Helper()
	for len(values) < n {
		require.NoError(t, q.Do(t.Context(), 1, func(_ context.Context, items []kvqueue.Item) error {
			values = append(values, string(items[0].Value))
			return nil
		}))
	}
	return values
}
