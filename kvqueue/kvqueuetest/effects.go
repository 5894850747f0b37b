package kvqueuetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
)

// until looks again and again whether something is so.
func (f *fixture) until(so func() bool) {
	f.Helper()
	for !so() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-f.ctx.Done():
			f.Fatal("it did not come to be so")
		}
	}
}

func commitEffects(f *fixture) {
	q := f.open("q")
	f.enqueue(q, "a", "b")
	f.must(f.put("effect/old", ""))
	require.NoError(f, q.Do(f.ctx, 2, func(_ context.Context, items []kvqueue.Item) error {
		assert.NoError(f, q.Commit(f.ctx, items[:1], func(tx *kvqueue.Tx) {
			tx.Put(f.key("effect/new"), []byte("1"))
			tx.Delete(f.key("effect/old"))
			tx.If(kvqueue.Guard{Key: f.key("effect/old"), Is: kvqueue.Present})
		}))
		assert.ErrorIs(f, items[0].Err(), kvqueue.ErrSettled)
		assert.ErrorIs(f, q.Ack(f.ctx, items[0]), kvqueue.ErrSettled)
		assert.ErrorIs(f, q.Commit(f.ctx, items, nil), kvqueue.ErrSettled)
		assert.NoError(f, items[1].Err())
		return nil
	}))
	results, _ := f.read(f.span("effect/", "effect0"))
	assert.Equal(f, []string{"effect/new=1"}, f.text(results[0]))
	f.empty(q)
}

func commitEnqueues(f *fixture) {
	from, to := f.open("from"), f.open("to", kvqueue.Prefix("kvq2"))
	f.enqueue(from, "a")
	got := make(chan string, 2)
	var all sync.WaitGroup
	for range 2 { // they wait before there is anything
		all.Go(func() {
			assert.NoError(f, to.Do(f.ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
				got <- string(items[0].Value)
				return nil
			}))
		})
	}
	require.NoError(f, from.Do(f.ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
		return from.Commit(f.ctx, items, func(tx *kvqueue.Tx) {
			tx.Enqueue(to, []byte("x"), []byte("y"))
			tx.Enqueue(from, []byte("again"))
		})
	}))
	all.Wait()
	assert.ElementsMatch(f, []string{"x", "y"}, []string{<-got, <-got})
	assert.Equal(f, []string{"again"}, f.takes(from, 5))
	f.empty(from)
	f.empty(to)
}

func commitRefused(f *fixture) {
	q, to := f.open("q"), f.open("to")
	f.enqueue(q, "a")
	require.NoError(f, q.Do(f.ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
		err := q.Commit(f.ctx, items, func(tx *kvqueue.Tx) {
			tx.If(kvqueue.Guard{Key: f.key("never"), Is: kvqueue.Present})
			tx.Put(f.key("effect"), nil)
			tx.Enqueue(to, []byte("x"))
		})
		assert.ErrorIs(f, err, kvqueue.ErrConflict)
		assert.NoError(f, items[0].Err(), "it is claimed still")
		f.length(q, kvqueue.Length{Claimed: 1})
		return nil
	}))
	_, there := f.value("effect")
	assert.False(f, there)
	f.empty(q)
	f.empty(to)
}

func commitTooLarge(f *fixture) {
	q := f.open("q")
	f.enqueue(q, "a")
	l := f.kv.Limits()
	var invalid *kvqueue.InvalidError
	require.NoError(f, q.Do(f.ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
		assert.ErrorAs(f, q.Commit(f.ctx, items, func(tx *kvqueue.Tx) {
			for i := range min(l.Guards, 1<<16) {
				tx.If(kvqueue.Guard{Key: f.key(fmt.Sprint(i)), Is: kvqueue.Absent})
			}
		}), &invalid)
		assert.ErrorAs(f, q.Commit(f.ctx, items, func(tx *kvqueue.Tx) {
			for i := range min(l.Writes, 1<<16) {
				tx.Put(f.key(fmt.Sprint(i)), nil)
			}
		}), &invalid)
		assert.ErrorAs(f, q.Commit(f.ctx, items, func(tx *kvqueue.Tx) { tx.Put(f.key("large"), make([]byte, l.Bytes)) }), &invalid)
		assert.ErrorAs(f, q.Commit(f.ctx, nil, nil), &invalid)
		assert.ErrorAs(f, q.Commit(f.ctx, items, func(tx *kvqueue.Tx) { tx.Put([]byte("kvq/mine"), nil) }), &invalid)
		assert.ErrorAs(f, q.Commit(f.ctx, items, func(tx *kvqueue.Tx) { tx.Enqueue(nil, nil) }), &invalid)
		assert.NoError(f, items[0].Err())
		return nil
	}))
	f.empty(q)
}

func transacts(f *fixture) {
	q, to := f.open("q"), f.open("to", kvqueue.Prefix("kvq2"))
	f.must(f.put("old", "1"))
	got := make(chan []string)
	go func() { got <- f.takes(to, 2) }() // it waits before there is anything
	const orders = 8
	var all sync.WaitGroup
	for i := range orders { // they share no transaction, and those of other calls
		all.Go(func() {
			assert.NoError(f, q.Transact(f.ctx, func(tx *kvqueue.Tx) {
				tx.If(kvqueue.Guard{Key: f.key(fmt.Sprint("order", i)), Is: kvqueue.Absent})
				tx.Put(f.key(fmt.Sprint("order", i)), []byte("open"))
				tx.Enqueue(q, fmt.Append(nil, "first of ", i), fmt.Append(nil, "second of ", i))
			}))
		})
		all.Go(func() { f.enqueue(q, "other") })
	}
	all.Wait()
	require.NoError(f, q.Transact(f.ctx, func(tx *kvqueue.Tx) {
		tx.Delete(f.key("old"))
		tx.Enqueue(to, []byte("bill"))
		tx.Enqueue(q, []byte("last"))
	}))
	assert.Equal(f, []string{"bill"}, <-got)
	_, there := f.value("old")
	assert.False(f, there)
	var order []string
	for len(order) < 3*orders+1 {
		order = append(order, f.takes(q, 50)...)
	}
	assert.Equal(f, "last", order[len(order)-1])
	for i := range orders {
		value, _ := f.value(fmt.Sprint("order", i))
		assert.Equal(f, "open", value)
		at := slices.Index(order, fmt.Sprint("first of ", i))
		if assert.GreaterOrEqual(f, at, 0) {
			assert.Equal(f, fmt.Sprint("second of ", i), order[at+1])
		}
	}
	f.empty(q)
	assert.Equal(f, int64(3*orders+1), q.Stats().Enqueued)
}

func transactRefused(f *fixture) {
	q := f.open("q")
	f.must(f.put("order", "1"))
	assert.ErrorIs(f, q.Transact(f.ctx, func(tx *kvqueue.Tx) {
		tx.If(kvqueue.Guard{Key: f.key("order"), Is: kvqueue.Absent})
		tx.Put(f.key("order"), []byte("2"))
		tx.Enqueue(q, []byte("x"))
	}), kvqueue.ErrConflict)
	value, _ := f.value("order")
	assert.Equal(f, "1", value)
	var invalid *kvqueue.InvalidError
	l := f.kv.Limits()
	assert.ErrorAs(f, q.Transact(f.ctx, nil), &invalid)
	assert.ErrorAs(f, q.Transact(f.ctx, func(tx *kvqueue.Tx) { tx.If(kvqueue.Guard{Key: f.key("order"), Is: kvqueue.Present}) }), &invalid)
	assert.ErrorAs(f, q.Transact(f.ctx, func(tx *kvqueue.Tx) {
		for i := range min(l.Writes, 1<<16) {
			tx.Put(f.key(fmt.Sprint(i)), nil)
		}
	}), &invalid)
	assert.ErrorAs(f, q.Transact(f.ctx, func(tx *kvqueue.Tx) { tx.Put([]byte("kvq/mine"), nil) }), &invalid)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	assert.ErrorIs(f, q.Transact(ctx, func(tx *kvqueue.Tx) { tx.Enqueue(q, []byte("x")) }), context.Canceled)
	f.empty(q)
	require.NoError(f, q.Close(f.ctx))
	assert.ErrorIs(f, q.Transact(f.ctx, func(tx *kvqueue.Tx) { tx.Enqueue(q, []byte("x")) }), kvqueue.ErrClosed)
}

func closedWithClaims(f *fixture) {
	q, other := f.open("q"), f.open("q")
	f.enqueue(other, "a", "b")
	claimed, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- q.Do(f.ctx, 1, func(ctx context.Context, _ []kvqueue.Item) error {
			close(claimed)
			<-ctx.Done()
			assert.ErrorIs(f, context.Cause(ctx), kvqueue.ErrLost)
			return ctx.Err()
		})
	}()
	<-claimed
	require.NoError(f, q.Close(f.ctx))
	assert.ErrorIs(f, <-done, kvqueue.ErrLost)
	f.both(other, 2)
}

// both takes a, which is tried so often with this, and b, in whichever order they come.
func (f *fixture) both(q *kvqueue.Queue, attempt int) {
	f.Helper()
	var got []string
	for len(got) < 2 {
		require.NoError(f, q.Do(f.ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
			got = append(got, values(items)...)
			if string(items[0].Value) == "a" {
				assert.Equal(f, attempt, items[0].Attempt)
			}
			return nil
		}))
	}
	assert.ElementsMatch(f, []string{"a", "b"}, got)
	f.empty(q)
}

// sessionItemsComeBack cuts a handle off from the store while it has an item.
func sessionItemsComeBack(f *fixture) {
	other := f.open("q")
	f.enqueue(other, "a", "b")
	cut := &severed{KV: f.kv, cut: make(chan struct{})}
	q, err := kvqueue.Open(f.ctx, cut, f.root+"q", kvqueue.CompactedElsewhere(), kvqueue.RetryDelay(0, 0), kvqueue.TTL(f.leastTTL()))
	require.NoError(f, err)
	claimed, done := make(chan int), make(chan error, 1)
	go func() {
		err, was := error(nil), false
		for !was && f.ctx.Err() == nil { // on a machine that stands still for that long the claim may be lost before the handler begins
			err = q.Do(f.ctx, 1, func(ctx context.Context, items []kvqueue.Item) error {
				was = true
				close(cut.cut)
				claimed <- items[0].Attempt
				<-ctx.Done()
				assert.ErrorIs(f, context.Cause(ctx), kvqueue.ErrLost)
				assert.ErrorIs(f, items[0].Err(), kvqueue.ErrLost)
				return nil
			})
		}
		done <- err
	}()
	f.both(other, <-claimed+1)
	assert.ErrorIs(f, <-done, kvqueue.ErrLost)
	_ = q.Close(f.ctx) // it can not reach the store
}

// A severed store answers nothing after its cut.
type severed struct {
	kvqueue.KV
	cut chan struct{}
}

func (s *severed) reach(ctx context.Context) error {
	select {
	case <-s.cut:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
			return fmt.Errorf("kvqueuetest: the store can not be reached")
		}
	default:
		return nil
	}
}

func (s *severed) Read(ctx context.Context, ranges ...kvqueue.Range) ([]kvqueue.Result, kvqueue.Rev, error) {
	if err := s.reach(ctx); err != nil {
		return nil, 0, err
	}
	return s.KV.Read(ctx, ranges...)
}

func (s *severed) Commit(ctx context.Context, guards []kvqueue.Guard, writes []kvqueue.Write) (kvqueue.Rev, error) {
	if err := s.reach(ctx); err != nil {
		return 0, err
	}
	own := make([]kvqueue.Write, len(writes))
	for i, w := range writes {
		if x, ok := w.Session.(*severedSession); ok {
			w.Session = x.Session
		}
		own[i] = w
	}
	return s.KV.Commit(ctx, guards, own)
}

func (s *severed) Session(ctx context.Context, ttl time.Duration) (kvqueue.Session, error) {
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	x, err := s.KV.Session(ctx, ttl)
	if err != nil {
		return nil, err
	}
	return &severedSession{x, s}, nil
}

type severedSession struct {
	kvqueue.Session
	store *severed
}

func (x *severedSession) Renew(ctx context.Context) error {
	if err := x.store.reach(ctx); err != nil {
		return err
	}
	return x.Session.Renew(ctx)
}

func (x *severedSession) End(ctx context.Context) error {
	if err := x.store.reach(ctx); err != nil {
		return err
	}
	return x.Session.End(ctx)
}

func closedHandle(f *fixture) {
	q := f.open("q")
	f.enqueue(q, "a")
	waits := make(chan error, 1)
	empty := f.open("empty")
	go func() {
		waits <- empty.Do(f.ctx, 1, func(context.Context, []kvqueue.Item) error { return nil })
	}()
	require.NoError(f, empty.Close(f.ctx))
	assert.ErrorIs(f, <-waits, kvqueue.ErrClosed)
	require.NoError(f, q.Close(f.ctx))
	require.NoError(f, q.Close(f.ctx), "it may be closed again")
	_, err := q.Enqueue(f.ctx, []byte("b"))
	assert.ErrorIs(f, err, kvqueue.ErrClosed)
	assert.ErrorIs(f, q.Do(f.ctx, 1, func(context.Context, []kvqueue.Item) error { return nil }), kvqueue.ErrClosed)
	assert.NoError(f, q.Consume(f.ctx, 1, 1, func(context.Context, []kvqueue.Item) error { return nil }))
	assert.Equal(f, []string{"a"}, f.takes(f.open("q"), 1))
}
