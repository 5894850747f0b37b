package kvqueuetest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// session begins a session that is ended with the test.
func (f *fixture) session(ttl time.Duration) kvqueue.Session {
	f.Helper()
	s, err := f.kv.Session(f.ctx, ttl)
	require.NoError(f, err)
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.End(ctx) // it may have ended
	})
	return s
}

func (f *fixture) putWith(name string, s kvqueue.Session) kvqueue.Write {
	return kvqueue.Write{Key: f.key(name), Value: []byte("of a session"), Session: s}
}

func sessionIDs(f *fixture) {
	ids := map[int64]bool{}
	for range 10 {
		s := f.session(time.Minute)
		assert.False(f, ids[s.ID()])
		assert.NotZero(f, s.ID())
		ids[s.ID()] = true
	}
}

func sessionKeysVanish(f *fixture) {
	s, other := f.session(time.Minute), f.session(time.Minute)
	rev := f.must(f.putWith("k/1", s), f.putWith("k/2", s), f.putWith("k/other", other), f.put("k/none", ""))
	results, _ := f.read(f.span("k", "l"))
	assert.Len(f, results[0].Pairs, 4)
	require.NoError(f, s.End(f.ctx))
	events := f.changes(2, rev, f.key("k/"))
	assert.ElementsMatch(f, []string{"k/1 is gone", "k/2 is gone"}, f.texts(events))
	assert.Equal(f, events[0].Rev, events[1].Rev, "at one revision")
	results, _ = f.read(f.span("k", "l"))
	assert.Equal(f, []string{"k/none=", "k/other=of a session"}, f.text(results[0]))
	assert.NoError(f, s.End(f.ctx), "it may be ended again")
}

func sessionKeyDetached(f *fixture) {
	first, second := f.session(time.Minute), f.session(time.Minute)
	f.must(f.putWith("stays", first), f.putWith("moves", first), f.putWith("again", first), f.putWith("goes", first))
	rev := f.must(f.put("stays", ""), f.putWith("moves", second), f.del("again"))
	rev = max(rev, f.must(f.put("again", "")))
	require.NoError(f, first.End(f.ctx))
	assert.Equal(f, []string{"goes is gone"}, f.texts(f.changes(1, rev, f.key("goes"))))
	for _, name := range []string{"stays", "moves", "again"} {
		_, there := f.value(name)
		assert.True(f, there, name)
	}
	require.NoError(f, second.End(f.ctx))
	assert.Equal(f, []string{"moves is gone"}, f.texts(f.changes(1, rev, f.key("moves"))))
}

// sessionRenewed renews a session for longer than its TTL. On a machine that stands still for that
// long the session may end: then it is tried with one that lives longer.
func sessionRenewed(f *fixture) {
	for ttl := f.leastTTL(); ; ttl *= 2 {
		sent := time.Now()
		s, _ := f.brief(ttl, "kept")
		begin, err := time.Now(), error(nil)
		for err == nil && time.Since(begin) < 2*ttl {
			now := time.Now()
			if err = s.Renew(f.ctx); err == nil {
				sent = now
				time.Sleep(ttl / 5)
			}
		}
		_, there := f.value("kept")
		if time.Since(sent) >= ttl {
			continue
		}
		require.NoError(f, err)
		assert.True(f, there)
		return
	}
}

// brief begins a session that ends soon, and puts keys with it. On a machine so slow that the
// session has ended by then it begins one that lives longer.
func (f *fixture) brief(ttl time.Duration, names ...string) (kvqueue.Session, kvqueue.Rev) {
	f.Helper()
	for ; ; ttl *= 2 {
		s := f.session(ttl)
		var writes []kvqueue.Write
		for _, name := range names {
			writes = append(writes, f.putWith(name, s))
		}
		rev, err := f.kv.Commit(f.ctx, nil, writes)
		if errors.Is(err, kvqueue.ErrConflict) {
			continue
		}
		require.NoError(f, err)
		return s, rev
	}
}

func sessionExpires(f *fixture) {
	f.must(f.put("other", ""))
	s, rev := f.brief(f.leastTTL(), "k", "k2")
	events := f.changes(2, rev, f.key("k"))
	assert.ElementsMatch(f, []string{"k is gone", "k2 is gone"}, f.texts(events))
	assert.Greater(f, events[0].Rev, rev)
	assert.Equal(f, events[0].Rev, events[1].Rev, "at one revision")
	_, there := f.value("k")
	assert.False(f, there)
	_, there = f.value("other")
	assert.True(f, there)
	assert.ErrorIs(f, s.Renew(f.ctx), kvqueue.ErrSessionLost)
}

func sessionLost(f *fixture) {
	s := f.session(time.Minute)
	require.NoError(f, s.Renew(f.ctx))
	require.NoError(f, s.End(f.ctx))
	assert.ErrorIs(f, s.Renew(f.ctx), kvqueue.ErrSessionLost)
	assert.ErrorIs(f, s.Renew(f.ctx), kvqueue.ErrSessionLost)
}

func sessionWritesRefused(f *fixture) {
	s := f.session(time.Minute)
	require.NoError(f, s.End(f.ctx))
	_, err := f.kv.Commit(f.ctx, nil, []kvqueue.Write{f.put("a", ""), f.putWith("k", s)})
	assert.ErrorIs(f, err, kvqueue.ErrConflict)
	results, _ := f.read(f.span("a", "z"))
	assert.Empty(f, results[0].Pairs)
}
