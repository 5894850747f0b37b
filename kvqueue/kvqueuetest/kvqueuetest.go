// Package kvqueuetest tests whether a store does what package kvqueue builds on, and
// whether a queue works on it. Run it on a store of your own.
package kvqueuetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// Run tests a store: first its transactions, reads, watches and sessions, then queues on
// it. open is called once for each test, and may return the same store each time: no test
// uses keys of another, and none demands that the store is empty. Everything that open has begun is to
// be ended by a Cleanup.
//
// No test depends on how long a call takes. Those of sessions wait for one to end, which is
// after the least TTL of the store or a second, whichever is longer.
func Run(t *testing.T, open func(t testing.TB) kvqueue.KV) {
	for _, part := range []struct {
		name  string
		tests []test
	}{{"store", storeTests}, {"queue", queueTests}, {"operations", operationTests}, {"groups", groupTests}} {
		t.Run(part.name, func(t *testing.T) {
			for _, test := range part.tests {
				t.Run(test.name, func(t *testing.T) { test.run(newFixture(t, open(t))) })
			}
		})
	}
}

type test struct {
	name string
	run  func(f *fixture)
}

// patience is how long a test waits for something that ought to come.
const patience = 2 * time.Minute

// A fixture is what one test works on.
type fixture struct {
	*testing.T
	kv   kvqueue.KV
	ctx  context.Context
	root string // with which the keys and queues of the test begin
}

func newFixture(t *testing.T, kv kvqueue.KV) *fixture {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	var b [8]byte
	_, _ = rand.Read(b[:])
	return &fixture{t, kv, ctx, "kvqueuetest-" + hex.EncodeToString(b[:]) + "-"}
}

func (f *fixture) key(name string) []byte { return []byte(f.root + name) }

func (f *fixture) put(name, value string) kvqueue.Write {
	return kvqueue.Write{Key: f.key(name), Value: []byte(value)}
}

func (f *fixture) del(name string) kvqueue.Write {
	return kvqueue.Write{Key: f.key(name), Delete: true}
}

// must does writes on no condition.
func (f *fixture) must(writes ...kvqueue.Write) kvqueue.Rev {
	f.Helper()
	rev, err := f.kv.Commit(f.ctx, nil, writes)
	require.NoError(f, err)
	return rev
}

// span is the range from one name to before another.
func (f *fixture) span(from, to string) kvqueue.Range {
	return kvqueue.Range{Begin: f.key(from), End: f.key(to)}
}

func (f *fixture) read(ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev) {
	f.Helper()
	results, rev, err := f.kv.Read(f.ctx, ranges...)
	require.NoError(f, err)
	require.Len(f, results, len(ranges))
	return results, rev
}

// text returns pairs as name=value, without what all names begin with.
func (f *fixture) text(r kvqueue.Result) []string {
	pairs := []string{}
	for _, p := range r.Pairs {
		pairs = append(pairs, fmt.Sprintf("%s=%s", string(p.Key)[len(f.root):], p.Value))
	}
	return pairs
}

// value returns the value of a key, and whether there is one.
func (f *fixture) value(name string) (string, bool) {
	f.Helper()
	results, _ := f.read(kvqueue.Range{Begin: f.key(name)})
	if len(results[0].Pairs) == 0 {
		return "", false
	}
	return string(results[0].Pairs[0].Value), true
}

// open opens a handle on a queue of this test, and closes it at the end.
func (f *fixture) open(name string, options ...kvqueue.Option) *kvqueue.Queue {
	f.Helper()
	q, err := kvqueue.Open(f.ctx, f.kv, f.root+name, append([]kvqueue.Option{kvqueue.CompactedElsewhere(), kvqueue.RetryDelay(0, 0)}, options...)...)
	require.NoError(f, err)
	f.Cleanup(func() { assert.NoError(f, q.Close(context.Background())) })
	return q
}

// leastTTL is that of a session that is to end soon.
func (f *fixture) leastTTL() time.Duration { return max(f.kv.Limits().MinTTL, time.Second) }
