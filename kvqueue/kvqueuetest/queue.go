package kvqueuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// queueTests are those of a queue on the store.
var queueTests = []test{
	{"first in first out over two handles", firstInFirstOut},
	{"a position says where items stand", positions},
	{"a batch has at most as many as were asked for", batches},
	{"what one call adds is in its order", longEnqueue},
	{"each item goes to one of many consumers", manyConsumers},
	{"a consumer that waits is served when an item comes", waiters},
	{"a failed item goes back to its old place", failedGoesBack},
	{"an item that was tried comes alone", triedComesAlone},
	{"an item is dead after its attempts and can be requeued", deadLetters},
	{"a delay keeps a failed item back", retryDelay},
	{"TryTake does not wait", tryTake},
	{"Take is settled by the end of its scope", takeInScope},
	{"Take needs a scope", takeWithoutScope},
	{"Ack and Nack before the end", ackAndNack},
	{"Commit does effects with the acknowledgement", commitEffects},
	{"Commit adds to another queue", commitEnqueues},
	{"Commit is refused by a guard", commitRefused},
	{"Commit of too much is refused", commitTooLarge},
	{"Transact adds items with the caller's own writes", transacts},
	{"Transact is refused by a guard, and if it is too much", transactRefused},
	{"items that a closed handle had come back", closedWithClaims},
	{"items of a session that ended come back", sessionItemsComeBack},
	{"a closed handle", closedHandle},
	{"names of any bytes are kept apart", namesApart},
	{"prefixes are kept apart", prefixesApart},
	{"an item of the greatest size", largestItem},
	{"Peek and Len", peekAndLen},
}

func (f *fixture) enqueue(q *kvqueue.Queue, values ...string) kvqueue.Position {
	f.Helper()
	items := make([][]byte, len(values))
	for i, v := range values {
		items[i] = []byte(v)
	}
	pos, err := q.Enqueue(f.ctx, items...)
	require.NoError(f, err)
	return pos
}

func values(items []kvqueue.Item) []string {
	texts := []string{}
	for _, i := range items {
		texts = append(texts, string(i.Value))
	}
	return texts
}

// takes claims and acknowledges items, and returns their values.
func (f *fixture) takes(q *kvqueue.Queue, most int) (got []string) {
	f.Helper()
	require.NoError(f, q.Do(f.ctx, most, func(_ context.Context, items []kvqueue.Item) error {
		got = values(items)
		return nil
	}))
	return got
}

// empty demands that the queue has nothing left.
func (f *fixture) empty(q *kvqueue.Queue) {
	f.Helper()
	f.length(q, kvqueue.Length{})
}

func (f *fixture) length(q *kvqueue.Queue, want kvqueue.Length) {
	f.Helper()
	n, err := q.Len(f.ctx)
	require.NoError(f, err)
	assert.Equal(f, want, n)
}

var errBoom = errors.New("boom")

func firstInFirstOut(f *fixture) {
	handles := []*kvqueue.Queue{f.open("q"), f.open("q")}
	const items = 40
	for i := range items {
		f.enqueue(handles[i%2], fmt.Sprint(i))
	}
	for i := range items {
		assert.Equal(f, []string{fmt.Sprint(i)}, f.takes(handles[i/3%2], 1))
	}
	f.empty(handles[0])
}

func positions(f *fixture) {
	q := f.open("q")
	one, two := f.enqueue(q, "a", "b", "c"), f.enqueue(q, "d")
	assert.Equal(f, 3, one.Items)
	assert.Equal(f, 1, two.Items)
	assert.Equal(f, two.First, two.Last)
	keys := []kvqueue.Key{one.First, one.Last, two.First}
	assert.True(f, slices.IsSortedFunc(keys, func(a, b kvqueue.Key) int { return slices.Compare(a[:], b[:]) }))
	items, err := q.Peek(f.ctx, 10)
	require.NoError(f, err)
	require.Equal(f, []string{"a", "b", "c", "d"}, values(items))
	assert.Equal(f, one.First, items[0].Key)
	assert.Equal(f, one.Last, items[2].Key)
	assert.Equal(f, two.First, items[3].Key)
}

func batches(f *fixture) {
	q := f.open("q")
	f.enqueue(q, "a", "b", "c", "d", "e")
	assert.Equal(f, []string{"a", "b"}, f.takes(q, 2))
	assert.Equal(f, []string{"c", "d", "e"}, f.takes(q, 10))
	f.empty(q)
}

// longEnqueue adds more than one transaction can hold.
func longEnqueue(f *fixture) {
	q := f.open("q")
	var want []string
	for i := range 150 {
		want = append(want, fmt.Sprint(i))
	}
	assert.Equal(f, 150, f.enqueue(q, want...).Items)
	var got []string
	for len(got) < len(want) {
		got = append(got, f.takes(q, 1000)...)
	}
	assert.Equal(f, want, got)
}

func manyConsumers(f *fixture) {
	const items, handles = 200, 3
	in := f.open("q")
	ctx, stop := context.WithCancel(f.ctx)
	defer stop()
	var mu sync.Mutex
	got := map[string]int{}
	var all sync.WaitGroup
	for range handles {
		q := f.open("q")
		all.Go(func() {
			err := q.Consume(ctx, 3, 2, func(_ context.Context, items []kvqueue.Item) error {
				mu.Lock()
				defer mu.Unlock()
				for _, i := range items {
					got[string(i.Value)]++
				}
				return nil
			})
			assert.ErrorIs(f, err, context.Canceled)
		})
	}
	for i := range items {
		f.enqueue(in, fmt.Sprint(i))
	}
	f.until(func() bool { n, err := in.Len(f.ctx); return err == nil && n == kvqueue.Length{} })
	stop()
	all.Wait()
	assert.Len(f, got, items)
	for v, n := range got {
		assert.Equal(f, 1, n, v)
	}
}

func waiters(f *fixture) {
	in, one, two := f.open("q"), f.open("q"), f.open("q")
	got := make(chan string, 4)
	var all sync.WaitGroup
	for _, q := range []*kvqueue.Queue{one, two, one, two} {
		all.Go(func() {
			assert.NoError(f, q.Do(f.ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
				got <- string(items[0].Value)
				return nil
			}))
		})
	}
	for i := range 4 {
		f.enqueue(in, fmt.Sprint(i))
	}
	all.Wait()
	close(got)
	var values []string
	for v := range got {
		values = append(values, v)
	}
	assert.ElementsMatch(f, []string{"0", "1", "2", "3"}, values)
}

func namesApart(f *fixture) {
	names := []string{"a", "a/", "a/q", "a%2F", "a%2Fq", "A", "a\x00", "a\xff", "ä", " ", "..", strings.Repeat("/", 300)}
	var queues []*kvqueue.Queue
	for _, name := range names {
		q := f.open(name)
		queues = append(queues, q)
		f.enqueue(q, name)
	}
	for i, q := range queues {
		assert.Equal(f, []string{names[i]}, f.takes(q, 10))
		f.empty(q)
	}
	_, err := kvqueue.Open(f.ctx, f.kv, "", kvqueue.CompactedElsewhere())
	var invalid *kvqueue.InvalidError
	assert.ErrorAs(f, err, &invalid)
}

func prefixesApart(f *fixture) {
	prefixes := []string{"kvq", f.root, f.root + "/", f.root + "/q", "kvq/"}
	var queues []*kvqueue.Queue
	for _, p := range prefixes {
		q := f.open("q", kvqueue.Prefix(p))
		queues = append(queues, q)
		f.enqueue(q, p)
	}
	for i, q := range queues {
		assert.Equal(f, []string{prefixes[i]}, f.takes(q, 10))
		f.empty(q)
	}
}

// largestItem finds out from the refusal of a far too large one how large one may be.
func largestItem(f *fixture) {
	q := f.open("q")
	_, err := q.Enqueue(f.ctx, []byte("small"), make([]byte, f.kv.Limits().Bytes))
	var invalid *kvqueue.InvalidError
	require.ErrorAs(f, err, &invalid)
	f.empty(q)
	most := 0
	_, rest, found := strings.Cut(invalid.Why, "bytes, and ")
	require.True(f, found, invalid.Why)
	_, err = fmt.Sscanf(rest, "%d is the most", &most)
	require.NoError(f, err, invalid.Why)
	large := strings.Repeat("x", most)
	f.enqueue(q, large, "small", large, "small")
	_, err = q.Enqueue(f.ctx, make([]byte, most+1))
	require.ErrorAs(f, err, &invalid)
	var got []string
	for len(got) < 4 {
		got = append(got, f.takes(q, 4)...)
	}
	for i, want := range []string{large, "small", large, "small"} {
		assert.True(f, want == got[i], "item %d has %d bytes", i, len(got[i]))
	}
	f.enqueue(q, "")
	assert.Equal(f, []string{""}, f.takes(q, 1))
	f.empty(q)
}

func peekAndLen(f *fixture) {
	q := f.open("q")
	var want []string
	for i := range 600 {
		want = append(want, fmt.Sprint(i))
	}
	f.enqueue(q, want...)
	f.length(q, kvqueue.Length{Ready: 600})
	items, err := q.Peek(f.ctx, 3)
	require.NoError(f, err)
	assert.Equal(f, want[:3], values(items))
	assert.Error(f, items[0].Err(), "it is not claimed")
	require.NoError(f, q.Do(f.ctx, 2, func(context.Context, []kvqueue.Item) error {
		f.length(q, kvqueue.Length{Ready: 598, Claimed: 2})
		items, err := q.Peek(f.ctx, 1000)
		require.NoError(f, err)
		assert.Equal(f, want[2:], values(items))
		return nil
	}))
	f.length(q, kvqueue.Length{Ready: 598})
}
