package kvqueuetest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// storeTests are those of the store alone.
var storeTests = []test{
	{"a range is read in the order of bytes and up to its limit", readsRanges},
	{"a read without an end is of one key", readsOneKey},
	{"keys can be read without their values", readsKeysOnly},
	{"keys and values are any bytes", anyBytes},
	{"ranges of one read are of one revision", readsSnapshots},
	{"each transaction has a revision of its own", revisionsGrow},
	{"a pair has the revision that wrote it", pairsHaveRevisions},
	{"a transaction is done as a whole or not at all", wholeTransactions},
	{"an unchanged guard", guardUnchanged},
	{"an absent guard", guardAbsent},
	{"a guard that a range is empty", guardEmptyRange},
	{"a present guard", guardPresent},
	{"a guard that a value is below", guardBelow},
	{"every guard has to hold", guardsAll},
	{"of transactions with one guard one wins", guardsRace},
	{"a conflict names a revision", conflictsNameRevisions},
	{"transactions up to the limits", withinLimits},
	{"transactions over the limits are refused", beyondLimits},
	{"a key that is written twice is refused", writtenTwice},
	{"updates read and write in one step", updatesRace},
	{"updates that are refused", updatesRefused},
	{"a glance sees what was done before", glances},
	{"calls with a context that has ended", endedContexts},
	{"a watch shows the changes in order", watchOrder},
	{"a watch shows its prefixes and nothing else", watchPrefixes},
	{"a watch begins in the past", watchFromThePast},
	{"a watch ends with its context", watchEnds},
	{"a watch from before a compaction", watchCompacted},
	{"sessions have different ids", sessionIDs},
	{"keys of a session vanish with it", sessionKeysVanish},
	{"a key that was written again without its session stays", sessionKeyDetached},
	{"a session that is renewed stays", sessionRenewed},
	{"a session that is not renewed ends", sessionExpires},
	{"a session that has ended can not be renewed", sessionLost},
	{"nothing is written with a session that has ended", sessionWritesRefused},
}

func readsRanges(f *fixture) {
	f.must(f.put("b", "2"), f.put("d", "4"), f.put("a", "1"), f.put("c", "3"), f.put("b\x00", "b0"), f.put("b\xff", "bf"))
	all := f.span("a", "d")
	three, none := all, f.span("x", "y")
	three.Limit = 3
	exact := f.span("c", "e")
	exact.Limit = 2
	results, _ := f.read(all, three, exact, none, kvqueue.Range{Begin: f.key("a"), End: []byte{}})
	assert.Equal(f, []string{"a=1", "b=2", "b\x00=b0", "b\xff=bf", "c=3"}, f.text(results[0]))
	assert.False(f, results[0].More)
	assert.Equal(f, []string{"a=1", "b=2", "b\x00=b0"}, f.text(results[1]))
	assert.True(f, results[1].More)
	assert.Equal(f, []string{"c=3", "d=4"}, f.text(results[2]))
	assert.False(f, results[2].More, "the limit has cut nothing")
	assert.Empty(f, results[3].Pairs)
	assert.Empty(f, results[4].Pairs, "no key is before an empty one")
}

func readsOneKey(f *fixture) {
	f.must(f.put("a", "1"), f.put("a0", "2"))
	results, _ := f.read(kvqueue.Range{Begin: f.key("a")}, kvqueue.Range{Begin: f.key("none")})
	assert.Equal(f, []string{"a=1"}, f.text(results[0]))
	assert.Empty(f, results[1].Pairs)
}

func readsKeysOnly(f *fixture) {
	rev := f.must(f.put("a", "1"), f.put("b", "2"))
	r := f.span("a", "c")
	r.KeysOnly = true
	results, _ := f.read(r, kvqueue.Range{Begin: f.key("a"), KeysOnly: true})
	assert.Equal(f, []string{"a=", "b="}, f.text(results[0]))
	assert.Equal(f, rev, results[0].Pairs[0].Rev)
	assert.Equal(f, []string{"a="}, f.text(results[1]))
}

func anyBytes(f *fixture) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	f.must(f.put("a"+string(all), string(all)), f.put("empty", ""))
	value, _ := f.value("a" + string(all))
	assert.Equal(f, string(all), value)
	_, there := f.value("empty")
	assert.True(f, there)
}

// readsSnapshots moves a token between two keys, and never reads both or none.
func readsSnapshots(f *fixture) {
	f.must(f.put("here", ""))
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 100 {
			from, to := "here", "there"
			if i%2 == 1 {
				from, to = to, from
			}
			if _, err := f.kv.Commit(f.ctx, nil, []kvqueue.Write{f.del(from), f.put(to, "")}); !assert.NoError(f, err) {
				return
			}
		}
	})
	last := kvqueue.Rev(0)
	for range 100 {
		results, rev, err := f.kv.Read(f.ctx, kvqueue.Range{Begin: f.key("here")}, f.span("there", "there0"))
		if !assert.NoError(f, err) {
			break
		}
		assert.Equal(f, 1, len(results[0].Pairs)+len(results[1].Pairs))
		assert.GreaterOrEqual(f, rev, last)
		last = rev
	}
	all.Wait()
}

func revisionsGrow(f *fixture) {
	_, last := f.read(f.span("a", "b"))
	for range 10 {
		rev := f.must(f.put("a", ""))
		assert.Greater(f, rev, last)
		_, seen := f.read(f.span("a", "b"))
		assert.GreaterOrEqual(f, seen, rev, "a read sees what was done before")
		last = seen
	}
}

func pairsHaveRevisions(f *fixture) {
	first := f.must(f.put("a", "1"), f.put("b", "1"))
	second := f.must(f.put("b", "2"))
	results, _ := f.read(f.span("a", "c"))
	require.Len(f, results[0].Pairs, 2)
	assert.Equal(f, first, results[0].Pairs[0].Rev)
	assert.Equal(f, second, results[0].Pairs[1].Rev)
	f.must(f.del("b"))
	again := f.must(f.put("b", "2"))
	results, _ = f.read(kvqueue.Range{Begin: f.key("b")})
	require.Len(f, results[0].Pairs, 1)
	assert.Equal(f, again, results[0].Pairs[0].Rev)
}

func wholeTransactions(f *fixture) {
	f.must(f.put("gone", "1"), f.put("changed", "1"))
	f.must(f.del("gone"), f.put("changed", "2"), f.put("new", "3"), f.del("never was"))
	results, _ := f.read(f.span("", "z"))
	assert.Equal(f, []string{"changed=2", "new=3"}, f.text(results[0]))
	f.refused(kvqueue.Guard{Key: f.key("gone"), Is: kvqueue.Present}, f.del("changed"), f.put("newer", "4"))
	results, _ = f.read(f.span("", "z"))
	assert.Equal(f, []string{"changed=2", "new=3"}, f.text(results[0]))
}

// holds demands that a guard holds, refused that it does not.
func (f *fixture) holds(g kvqueue.Guard) {
	f.Helper()
	_, err := f.kv.Commit(f.ctx, []kvqueue.Guard{g}, []kvqueue.Write{f.put("zz witness", "")})
	assert.NoError(f, err)
}

func (f *fixture) refused(g kvqueue.Guard, writes ...kvqueue.Write) {
	f.Helper()
	_, before := f.read(f.span("a", "b"))
	_, err := f.kv.Commit(f.ctx, []kvqueue.Guard{g}, append(writes, f.put("zz refused", "")))
	assert.ErrorIs(f, err, kvqueue.ErrConflict)
	assert.NotErrorIs(f, err, kvqueue.ErrUnknown)
	_, there := f.value("zz refused")
	assert.False(f, there)
	_, after := f.read(f.span("a", "b"))
	assert.GreaterOrEqual(f, after, before)
}

func guardUnchanged(f *fixture) {
	first := f.must(f.put("a", "1"))
	f.holds(kvqueue.Guard{Key: f.key("a"), Is: kvqueue.Unchanged, Rev: first})
	second := f.must(f.put("a", "1"))
	f.refused(kvqueue.Guard{Key: f.key("a"), Is: kvqueue.Unchanged, Rev: first})
	f.holds(kvqueue.Guard{Key: f.key("a"), Is: kvqueue.Unchanged, Rev: second})
	f.must(f.del("a"))
	f.refused(kvqueue.Guard{Key: f.key("a"), Is: kvqueue.Unchanged, Rev: second})
	f.refused(kvqueue.Guard{Key: f.key("never"), Is: kvqueue.Unchanged, Rev: second})
}

func guardAbsent(f *fixture) {
	f.holds(kvqueue.Guard{Key: f.key("a"), Is: kvqueue.Absent})
	f.must(f.put("a", ""))
	f.refused(kvqueue.Guard{Key: f.key("a"), Is: kvqueue.Absent})
	f.holds(kvqueue.Guard{Key: f.key("a\x00"), Is: kvqueue.Absent})
	f.must(f.del("a"))
	f.holds(kvqueue.Guard{Key: f.key("a"), Is: kvqueue.Absent})
}

func guardEmptyRange(f *fixture) {
	f.must(f.put("a", "1"), f.put("m", "1"))
	empty := func(from, to string) kvqueue.Guard {
		return kvqueue.Guard{Key: f.key(from), End: f.key(to), Is: kvqueue.Absent}
	}
	f.holds(empty("b", "m"))
	f.holds(empty("a\x00", "m"))
	f.holds(kvqueue.Guard{Key: f.key("a"), End: []byte{}, Is: kvqueue.Absent})
	f.refused(empty("b", "m\x00"))
	f.refused(empty("a", "b"))
	f.refused(empty("a", "z"))
	rev := f.must(f.put("c", "1"))
	f.refused(empty("b", "m"))
	_, err := f.kv.Commit(f.ctx, []kvqueue.Guard{{Key: f.key("c"), Is: kvqueue.Unchanged, Rev: rev}}, []kvqueue.Write{f.del("c")})
	require.NoError(f, err)
	f.holds(empty("b", "m"))
}

func guardPresent(f *fixture) {
	f.refused(kvqueue.Guard{Key: f.key("a"), Is: kvqueue.Present})
	f.must(f.put("a", ""))
	f.holds(kvqueue.Guard{Key: f.key("a"), Is: kvqueue.Present})
	f.must(f.del("a"))
	f.refused(kvqueue.Guard{Key: f.key("a"), Is: kvqueue.Present})
}

func guardBelow(f *fixture) {
	below := func(value string) kvqueue.Guard {
		return kvqueue.Guard{Key: f.key("a"), Is: kvqueue.Below, Value: []byte(value)}
	}
	f.refused(below("m"))
	f.must(f.put("a", "m"))
	f.refused(below("l"))
	f.refused(below("m"))
	f.holds(below("m\x00"))
	f.holds(below("n"))
	f.must(f.put("a", "\xff\x00"))
	f.refused(below("n"))
	f.holds(below("\xff\x01"))
	f.must(f.put("a", "\x00\x00\x01\x00"))
	f.refused(below("\x00\x00\x00\xff"))
	f.holds(below("\x00\x00\x01\x01"))
}

func guardsAll(f *fixture) {
	f.must(f.put("a", "1"))
	guards := []kvqueue.Guard{
		{Key: f.key("a"), Is: kvqueue.Present},
		{Key: f.key("b"), Is: kvqueue.Absent},
		{Key: f.key("c"), End: f.key("d"), Is: kvqueue.Absent},
	}
	_, err := f.kv.Commit(f.ctx, guards, []kvqueue.Write{f.put("e", "")})
	require.NoError(f, err)
	for i, breaks := range []kvqueue.Write{f.del("a"), f.put("b", ""), f.put("c1", "")} {
		f.must(f.put("a", "1"), f.del("b"), f.del("c1"))
		f.must(breaks)
		_, err := f.kv.Commit(f.ctx, guards, []kvqueue.Write{f.put("e", "")})
		assert.ErrorIs(f, err, kvqueue.ErrConflict, i)
	}
}

func guardsRace(f *fixture) {
	const rivals, rounds = 4, 25
	rev := f.must(f.put("turn", ""))
	for round := range rounds {
		var mu sync.Mutex
		var winners []kvqueue.Rev
		var all sync.WaitGroup
		for i := range rivals {
			all.Go(func() {
				got, err := f.kv.Commit(f.ctx, []kvqueue.Guard{{Key: f.key("turn"), Is: kvqueue.Unchanged, Rev: rev}},
					[]kvqueue.Write{f.put("turn", fmt.Sprint(i)), f.put(fmt.Sprintf("won %d", round), fmt.Sprint(i))})
				if err != nil {
					assert.ErrorIs(f, err, kvqueue.ErrConflict)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, got)
			})
		}
		all.Wait()
		require.Len(f, winners, 1)
		rev = winners[0]
	}
}

func conflictsNameRevisions(f *fixture) {
	put := f.must(f.put("a", "1"))
	rev, err := f.kv.Commit(f.ctx, []kvqueue.Guard{{Key: f.key("a"), Is: kvqueue.Absent}}, []kvqueue.Write{f.put("b", "")})
	require.ErrorIs(f, err, kvqueue.ErrConflict)
	assert.GreaterOrEqual(f, rev, put)
	_, now := f.read(f.span("a", "b"))
	assert.LessOrEqual(f, rev, now)
}

func withinLimits(f *fixture) {
	l := f.kv.Limits()
	var guards []kvqueue.Guard
	for i := range min(l.Guards, 1024) {
		guards = append(guards, kvqueue.Guard{Key: f.key(fmt.Sprint("g", i)), Is: kvqueue.Absent})
	}
	var writes []kvqueue.Write
	for i := range min(l.Writes, 1024) {
		writes = append(writes, f.put(fmt.Sprintf("w%04d", i), "x"))
	}
	_, err := f.kv.Commit(f.ctx, guards, writes)
	require.NoError(f, err)
	results, _ := f.read(f.span("w", "x"))
	assert.Len(f, results[0].Pairs, len(writes))
	key := f.key("large")
	value := bytes.Repeat([]byte("v"), min(l.Bytes, 64<<20)-len(key))
	_, err = f.kv.Commit(f.ctx, nil, []kvqueue.Write{{Key: key, Value: value}})
	require.NoError(f, err)
	results, _ = f.read(kvqueue.Range{Begin: key})
	require.Len(f, results[0].Pairs, 1)
	assert.True(f, bytes.Equal(value, results[0].Pairs[0].Value))
	f.must(f.del("large"))
}

func beyondLimits(f *fixture) {
	l := f.kv.Limits()
	refuse := func(guards []kvqueue.Guard, writes []kvqueue.Write) {
		f.Helper()
		_, err := f.kv.Commit(f.ctx, guards, writes)
		assert.Error(f, err)
		assert.NotErrorIs(f, err, kvqueue.ErrConflict)
		assert.NotErrorIs(f, err, kvqueue.ErrUnknown)
		_, there := f.value("a")
		assert.False(f, there)
	}
	if l.Guards <= 1024 {
		guards := make([]kvqueue.Guard, l.Guards+1)
		for i := range guards {
			guards[i] = kvqueue.Guard{Key: f.key(fmt.Sprint("g", i)), Is: kvqueue.Absent}
		}
		refuse(guards, []kvqueue.Write{f.put("a", "")})
	}
	if l.Writes <= 1024 {
		writes := []kvqueue.Write{f.put("a", "")}
		for i := range l.Writes {
			writes = append(writes, f.put(fmt.Sprint("w", i), ""))
		}
		refuse(nil, writes)
	}
	if l.Bytes <= 64<<20 {
		refuse(nil, []kvqueue.Write{{Key: f.key("a"), Value: make([]byte, l.Bytes)}})
	}
}

func writtenTwice(f *fixture) {
	for _, writes := range [][]kvqueue.Write{{f.put("a", "1"), f.put("a", "2")}, {f.put("a", "1"), f.del("a")}} {
		_, err := f.kv.Commit(f.ctx, nil, writes)
		assert.Error(f, err)
		assert.NotErrorIs(f, err, kvqueue.ErrConflict)
		assert.NotErrorIs(f, err, kvqueue.ErrUnknown)
		_, there := f.value("a")
		assert.False(f, there)
	}
}

func endedContexts(f *fixture) {
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, _, err := f.kv.Read(ctx, f.span("a", "b"))
	assert.ErrorIs(f, err, context.Canceled)
	_, err = f.kv.Commit(ctx, nil, []kvqueue.Write{f.put("a", "")})
	assert.ErrorIs(f, err, context.Canceled)
	_, err = f.kv.Session(ctx, time.Minute)
	assert.ErrorIs(f, err, context.Canceled)
	for range f.kv.Watch(ctx, 0, f.key("a")) {
		f.Error("the watch yields something")
	}
}
