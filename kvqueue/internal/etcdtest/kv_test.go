//go:build linux

package etcdtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/etcdkv"
	"github.com/ambit-go/ambit/kvqueue/internal/etcdtest"
	"github.com/ambit-go/ambit/kvqueue/kvqueuetest"
)

func put(key, value string) kvqueue.Write {
	return kvqueue.Write{Key: []byte(key), Value: []byte(value)}
}

func mustCommit(t *testing.T, kv kvqueue.KV, writes ...kvqueue.Write) kvqueue.Rev {
	t.Helper()
	rev, err := kv.Commit(t.Context(), nil, writes)
	require.NoError(t, err)
	return rev
}

func TestEtcdCarriesAQueue(t *testing.T) {
	for _, members := range []int{1, 3} {
		t.Run(fmt.Sprintf("members=%d", members), func(t *testing.T) {
			cluster := etcdtest.Start(t, members)
			client := cluster.Client(t)
			kvqueuetest.Run(t, func(testing.TB) kvqueue.KV { return etcdkv.New(client, patient) })
		})
	}
}

func TestStore(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	kv := etcdkv.New(cluster.Client(t), patient)
	t.Run("each guard holds when it should, and only then", func(t *testing.T) { guards(t, kv) })
	t.Run("a read is of one revision", func(t *testing.T) { reads(t, kv) })
	t.Run("a watch shows what was changed after a revision", func(t *testing.T) { watches(t, kv) })
	t.Run("what was put with a session vanishes with it", func(t *testing.T) { sessions(t, kv) })
	t.Run("what is too large is refused before it is sent", func(t *testing.T) { limits(t, kv) })
}

func guards(t *testing.T, kv kvqueue.KV) {
	rev := mustCommit(t, kv, put("g/a", "5"))
	k := func(key string) []byte { return []byte(key) }
	for name, c := range map[string]struct {
		guard kvqueue.Guard
		holds bool
	}{
		"unchanged":                        {kvqueue.Guard{Key: k("g/a"), Rev: rev}, true},
		"changed":                          {kvqueue.Guard{Key: k("g/a"), Rev: rev - 1}, false},
		"unchanged since 0, but not there": {kvqueue.Guard{Key: k("g/none")}, false},
		"absent":                           {kvqueue.Guard{Key: k("g/none"), Is: kvqueue.Absent}, true},
		"not absent":                       {kvqueue.Guard{Key: k("g/a"), Is: kvqueue.Absent}, false},
		"absent range":                     {kvqueue.Guard{Key: k("g/b"), End: k("g/z"), Is: kvqueue.Absent}, true},
		"a range that is not absent":       {kvqueue.Guard{Key: k("g/"), End: k("g/z"), Is: kvqueue.Absent}, false},
		"a range of no key":                {kvqueue.Guard{Key: k("g/a"), End: k("g/"), Is: kvqueue.Absent}, true},
		"present":                          {kvqueue.Guard{Key: k("g/a"), Is: kvqueue.Present}, true},
		"not present":                      {kvqueue.Guard{Key: k("g/none"), Is: kvqueue.Present}, false},
		"below":                            {kvqueue.Guard{Key: k("g/a"), Is: kvqueue.Below, Value: k("6")}, true},
		"not below":                        {kvqueue.Guard{Key: k("g/a"), Is: kvqueue.Below, Value: k("5")}, false},
		"below, but not there":             {kvqueue.Guard{Key: k("g/none"), Is: kvqueue.Below, Value: k("6")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kv.Commit(t.Context(), []kvqueue.Guard{c.guard}, nil)
			if c.holds {
				assert.NoError(t, err)
			} else {
				assert.ErrorIs(t, err, kvqueue.ErrConflict)
			}
		})
	}
}

func reads(t *testing.T, kv kvqueue.KV) {
	rev := mustCommit(t, kv, put("r/a", "1"), put("r/b", "2"), put("r/c", "3"))
	got, now, err := kv.Read(t.Context(),
		kvqueue.Range{Begin: []byte("r/a")},
		kvqueue.Range{Begin: []byte("r/c"), End: []byte("r/a")},
		kvqueue.Range{Begin: []byte("r/a"), End: []byte("r/z"), Limit: 2, KeysOnly: true},
		kvqueue.Range{Begin: []byte("r/none")})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, now, rev)
	assert.Equal(t, []kvqueue.Result{
		{Pairs: []kvqueue.Pair{{Key: []byte("r/a"), Value: []byte("1"), Rev: rev}}},
		{},
		{Pairs: []kvqueue.Pair{{Key: []byte("r/a"), Rev: rev}, {Key: []byte("r/b"), Rev: rev}}, More: true},
		{Pairs: []kvqueue.Pair{}},
	}, got)
	none, now, err := kv.Read(t.Context())
	require.NoError(t, err)
	assert.Empty(t, none)
	assert.GreaterOrEqual(t, now, rev)
}

func watches(t *testing.T, kv *etcdkv.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := mustCommit(t, kv, put("w/a/1", "before"))
	rev := mustCommit(t, kv, put("w/a/1", "x"), put("w/b/1", "y"), put("w/c/1", "z"))
	after := mustCommit(t, kv, kvqueue.Write{Key: []byte("w/a/1"), Delete: true})
	var a []kvqueue.Event
	events := 0
	var last error
	for e, err := range kv.Watch(ctx, before, []byte("w/a/"), []byte("w/b/")) {
		if last = err; err != nil {
			break
		}
		if string(e.Key) == "w/a/1" {
			a = append(a, e)
		}
		if events++; events == 3 {
			cancel()
		}
	}
	require.NoError(t, last, "a watch that its context has ended says nothing")
	require.Len(t, a, 2)
	assert.Equal(t, kvqueue.Event{Pair: kvqueue.Pair{Key: []byte("w/a/1"), Value: []byte("x"), Rev: rev}}, a[0])
	assert.True(t, a[1].Deleted)

	require.NoError(t, kv.Compact(t.Context(), after))
	require.NoError(t, kv.Compact(t.Context(), after), "twice is no error")
	for _, err := range kv.Watch(t.Context(), before, []byte("w/a/"), []byte("w/b/")) {
		require.ErrorIs(t, err, kvqueue.ErrCompacted)
	}
}

func sessions(t *testing.T, kv kvqueue.KV) {
	long, err := kv.Session(t.Context(), time.Hour)
	require.NoError(t, err)
	require.NoError(t, long.Renew(t.Context()))
	require.NoError(t, long.End(t.Context()))
	var s kvqueue.Session
	var begin kvqueue.Rev
	eventually(t, "a key is put with a session that ends soon", func() bool {
		s, err = kv.Session(t.Context(), 2*time.Second)
		require.NoError(t, err)
		begin, err = kv.Commit(t.Context(), nil, []kvqueue.Write{{Key: []byte("s/a"), Session: s}})
		return !errors.Is(err, kvqueue.ErrConflict) // it may have ended before that
	})
	require.NoError(t, err)
	for e, err := range kv.Watch(t.Context(), begin, []byte("s/")) { // its time comes
		require.NoError(t, err)
		assert.True(t, e.Deleted)
		break
	}
	assert.ErrorIs(t, s.Renew(t.Context()), kvqueue.ErrSessionLost)
	assert.NoError(t, s.End(t.Context()))
	_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{put("s/b", ""), {Key: []byte("s/a"), Session: s}})
	assert.ErrorIs(t, err, kvqueue.ErrConflict)
	got, _, err := kv.Read(t.Context(), kvqueue.Range{Begin: []byte("s/b")})
	require.NoError(t, err)
	assert.Empty(t, got[0].Pairs, "nothing of that transaction was done")
}

func limits(t *testing.T, kv kvqueue.KV) {
	var invalid *kvqueue.InvalidError
	_, err := kv.Commit(t.Context(), nil, []kvqueue.Write{put("l/a", string(make([]byte, 2<<20)))})
	assert.True(t, errors.As(err, &invalid), "%v", err)
	_, err = kv.Commit(t.Context(), nil, []kvqueue.Write{put("l/a", "1"), put("l/a", "2")})
	assert.True(t, errors.As(err, &invalid), "%v", err)
	_, err = kv.Commit(t.Context(), nil, make([]kvqueue.Write, 129))
	assert.True(t, errors.As(err, &invalid), "%v", err)
}
