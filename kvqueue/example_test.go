package kvqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/memkv"
)

// filled opens a queue in memory and adds items. done closes both.
func filled(options []kvqueue.Option, items ...string) (ctx context.Context, q *kvqueue.Queue, done func()) {
	ctx = context.Background()
	kv := memkv.New()
	now := kvqueue.RetryDelay(0, 0) // what has failed goes back at once
	q, err := kvqueue.Open(ctx, kv, "orders", append([]kvqueue.Option{now}, options...)...)
	if err != nil {
		panic(err)
	}
	for _, i := range items {
		if _, err := q.Enqueue(ctx, []byte(i)); err != nil {
			panic(err)
		}
	}
	return ctx, q, func() { _ = q.Close(ctx); kv.Close() }
}

// show takes one item and prints it.
func show(_ context.Context, items []kvqueue.Item) error {
	for _, i := range items {
		fmt.Printf("%s, attempt %d\n", i.Value, i.Attempt)
	}
	return nil
}

func ExampleOpen() {
	ctx := context.Background()
	kv := memkv.New()
	defer kv.Close()
	q, err := kvqueue.Open(ctx, kv, "orders")
	if err != nil {
		panic(err)
	}
	defer q.Close(ctx)
	_, _ = q.Enqueue(ctx, []byte("order 1"))
	_ = q.Do(ctx, 1, func(_ context.Context, items []kvqueue.Item) error {
		fmt.Printf("%s\n", items[0].Value)
		return nil
	})
	_, err = kvqueue.Open(ctx, kv, "")
	fmt.Println(err)
	// Output:
	// order 1
	// kvqueue: name: it has 0 bytes, and must have from 1 to 1024
}

func ExampleQueue_Enqueue() {
	ctx, q, done := filled(nil)
	defer done()
	pos, err := q.Enqueue(ctx, []byte("a"), []byte("b"))
	fmt.Println(pos.Items, err)
	items, _ := q.Peek(ctx, 10)
	fmt.Println(items[0].Key == pos.First, items[1].Key == pos.Last)
	// Output:
	// 2 <nil>
	// true true
}

func ExampleQueue_Add() {
	ctx, q, done := filled(nil)
	defer done()
	key, err := q.Add(ctx, []byte("a"), kvqueue.ID("order-17"))
	fmt.Println(key != kvqueue.Key{}, err)
	_, err = q.Add(ctx, nil, kvqueue.ID(""))
	fmt.Println(err)
	// Output:
	// true <nil>
	// kvqueue: ID: it is empty: leave it out, or give what tells this item from all others
}

func ExampleTx_Add() {
	ctx, q, done := filled(nil)
	defer done()
	for _, status := range []string{"paid", "packed"} { // the item is added once, the status written twice
		_ = q.Transact(ctx, func(tx *kvqueue.Tx) {
			tx.Put([]byte("order/17"), []byte(status))
			tx.Add(q, []byte("ship order 17"), kvqueue.ID("ship/17"))
		})
	}
	fmt.Println(q.Len(ctx))
	// Output: {1 0 0 0} <nil>
}

func ExampleID() {
	ctx, q, done := filled(nil)
	defer done()
	first, _ := q.Add(ctx, []byte("a"), kvqueue.ID("order-17"))
	again, err := q.Add(ctx, []byte("a"), kvqueue.ID("order-17")) // by whatever process, and also when the item is gone
	fmt.Println(again == first, err)
	fmt.Println(q.Len(ctx))
	// Output:
	// true <nil>
	// {1 0 0 0} <nil>
}

func ExampleQueue_Do() {
	ctx, q, done := filled(nil, "a", "b")
	defer done()
	err := q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return errors.New("out of paper") })
	fmt.Println(err)
	_ = q.Do(ctx, 1, show)
	_ = q.Do(ctx, 1, show)
	// Output:
	// out of paper
	// a, attempt 2
	// b, attempt 1
}

func ExampleQueue_Consume() {
	ctx, q, done := filled(nil, "a", "b", "c")
	defer done()
	ctx, stop := context.WithCancel(ctx)
	err := q.Consume(ctx, 1, 1, func(ctx context.Context, items []kvqueue.Item) error {
		if string(items[0].Value) == "c" {
			time.AfterFunc(100*time.Millisecond, stop) // when this item is acknowledged
		}
		return show(ctx, items)
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// a, attempt 1
	// b, attempt 1
	// c, attempt 1
	// true
}

func ExampleQueue_Take() {
	ctx, q, done := filled(nil, "a", "b")
	defer done()
	_ = async.Scope(ctx, func(ctx context.Context) error {
		items, err := q.Take(ctx, 2)
		fmt.Println(len(items), err)
		return show(ctx, items) // its end settles them
	})
	_, err := q.Take(ctx, 1)
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// a, attempt 1
	// b, attempt 1
	// kvqueue: Take needs a context with a scope: use Do, or async.Scope
}

func ExampleQueue_TryTake() {
	ctx, q, done := filled(nil)
	defer done()
	_ = async.Scope(ctx, func(ctx context.Context) error {
		items, err := q.TryTake(ctx, 1)
		fmt.Println(len(items), err)
		return nil
	})
	// Output: 0 <nil>
}

func ExampleQueue_Ack() {
	ctx, q, done := filled(nil, "a", "b")
	defer done()
	_ = q.Do(ctx, 2, func(ctx context.Context, items []kvqueue.Item) error {
		fmt.Println(q.Ack(ctx, items[0]))
		return errors.New("the second fails")
	})
	_ = q.Do(ctx, 2, show)
	// Output:
	// <nil>
	// b, attempt 2
}

func ExampleQueue_Nack() {
	ctx, q, done := filled(nil, "a", "b")
	defer done()
	_ = q.Do(ctx, 2, func(ctx context.Context, items []kvqueue.Item) error {
		_ = q.Nack(ctx, errors.New("no such customer"), items[0])
		return q.Nack(ctx, nil, items[1]) // without a failure
	})
	_ = q.Do(ctx, 1, show)
	_ = q.Do(ctx, 1, show)
	// Output:
	// a, attempt 2
	// b, attempt 1
}

func ExampleQueue_Commit() {
	ctx, q, done := filled(nil, "order 1")
	defer done()
	_ = q.Do(ctx, 1, func(ctx context.Context, items []kvqueue.Item) error {
		return q.Commit(ctx, items, func(tx *kvqueue.Tx) {
			tx.If(kvqueue.Guard{Key: []byte("shipped/1"), Is: kvqueue.Absent})
			tx.Put([]byte("shipped/1"), []byte("today"))
			tx.Delete([]byte("open/1"))
			tx.Enqueue(q, []byte("bill 1"))
		})
	})
	_ = q.Do(ctx, 1, show)
	// Output: bill 1, attempt 1
}

// An order and the item that is about it are there together, or neither is.
func ExampleQueue_Transact() {
	ctx, q, done := filled(nil)
	defer done()
	order := func() error {
		return q.Transact(ctx, func(tx *kvqueue.Tx) {
			tx.If(kvqueue.Guard{Key: []byte("order/17"), Is: kvqueue.Absent})
			tx.Put([]byte("order/17"), []byte("two of these"))
			tx.Enqueue(q, []byte("order/17"))
		})
	}
	fmt.Println(order())
	fmt.Println(errors.Is(order(), kvqueue.ErrConflict))
	_ = q.Do(ctx, 1, show)
	// Output:
	// <nil>
	// true
	// order/17, attempt 1
}

func ExampleQueue_Peek() {
	ctx, q, done := filled(nil, "a", "b", "c")
	defer done()
	items, _ := q.Peek(ctx, 2)
	fmt.Printf("%s %s\n", items[0].Value, items[1].Value)
	// Output: a b
}

func ExampleQueue_Len() {
	ctx, q, done := filled(nil, "a", "b", "c")
	defer done()
	_ = q.Do(ctx, 1, func(ctx context.Context, _ []kvqueue.Item) error {
		n, err := q.Len(ctx)
		fmt.Printf("%+v %v\n", n, err)
		return nil
	})
	// Output: {Ready:2 Claimed:1 Dead:0 Grouped:0} <nil>
}

func ExampleQueue_Age() {
	ctx, q, done := filled(nil, "a")
	defer done()
	age, err := q.Age(ctx)
	fmt.Println(age < time.Hour, err)
	// Output: true <nil>
}

func ExampleQueue_Stats() {
	ctx, q, done := filled(nil, "a")
	defer done()
	_ = q.Do(ctx, 1, show)
	s := q.Stats()
	fmt.Println(s.Enqueued, s.Claimed, s.Acked)
	// Output:
	// a, attempt 1
	// 1 1 1
}

func ExampleQueue_Dead() {
	ctx, q, done := filled([]kvqueue.Option{kvqueue.MaxAttempts(1)}, "a")
	defer done()
	_ = q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return errors.New("no such customer") })
	letters, _ := q.Dead(ctx, kvqueue.Key{}, 10)
	for _, l := range letters {
		fmt.Printf("%s: %d failures, the last: %s\n", l.Value, l.Failures, l.Why)
	}
	// Output: a: 1 failures, the last: no such customer
}

func ExampleQueue_Requeue() {
	ctx, q, done := filled([]kvqueue.Option{kvqueue.MaxAttempts(1)}, "a", "b")
	defer done()
	_ = q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return errors.New("no such customer") })
	letters, _ := q.Dead(ctx, kvqueue.Key{}, 10)
	fmt.Println(q.Requeue(ctx, letters[0].Key))
	_ = q.Do(ctx, 2, show) // before b, its old place
	// Output:
	// 1 <nil>
	// a, attempt 1
	// b, attempt 1
}

func ExampleQueue_RequeueAll() {
	ctx, q, done := buriedOrders()
	defer done()
	fmt.Println(q.RequeueAll(ctx, kvqueue.Filter{Why: "paper"}))
	// Output: 1 <nil>
}

func ExampleQueue_FindDead() {
	ctx, q, done := buriedOrders()
	defer done()
	for letter, err := range q.FindDead(ctx, kvqueue.Filter{Why: "paper"}) {
		fmt.Printf("%s: %s %v\n", letter.Value, letter.Why, err)
	}
	// Output: a: out of paper <nil>
}

func ExampleQueue_DiscardAll() {
	ctx, q, done := buriedOrders()
	defer done()
	fmt.Println(q.DiscardAll(ctx, kvqueue.Filter{Why: "ink"}))
	fmt.Println(q.DiscardAll(ctx, kvqueue.Filter{Before: time.Now().AddDate(0, -1, 0)})) // older than a month
	// Output:
	// 1 <nil>
	// 0 <nil>
}

func ExampleQueue_Discard() {
	ctx, q, done := buriedOrders()
	defer done()
	letters, _ := q.Dead(ctx, kvqueue.Key{}, 1)
	fmt.Println(q.Discard(ctx, letters[0].Key))
	fmt.Println(q.Discard(ctx, letters[0].Key)) // it is gone
	// Output:
	// 1 <nil>
	// 0 <nil>
}

// buriedOrders opens a queue with two dead letters.
func buriedOrders() (ctx context.Context, q *kvqueue.Queue, done func()) {
	ctx, q, done = filled([]kvqueue.Option{kvqueue.MaxAttempts(1)}, "a", "b")
	for _, why := range []string{"out of paper", "out of ink"} {
		_ = q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return errors.New(why) })
	}
	return ctx, q, done
}

func ExampleQueue_Purge() {
	ctx, q, done := filled(nil, "a", "b", "c")
	defer done()
	fmt.Println(q.Purge(ctx, kvqueue.Filter{Most: 1}))
	fmt.Println(q.Purge(ctx, kvqueue.Filter{}))
	// Output:
	// 1 <nil>
	// 2 <nil>
}

func ExampleQueues() {
	ctx := context.Background()
	kv := memkv.New()
	defer kv.Close()
	for _, name := range []string{"orders", "mail/in"} {
		q, err := kvqueue.Open(ctx, kv, name)
		if err != nil {
			panic(err)
		}
		defer q.Close(ctx)
	}
	fmt.Println(kvqueue.Queues(ctx, kv))
	// Output: [mail/in orders] <nil>
}

func ExampleQueue_Close() {
	ctx, q, done := filled(nil)
	defer done()
	fmt.Println(q.Close(ctx))
	_, err := q.Enqueue(ctx, []byte("a"))
	fmt.Println(err)
	// Output:
	// <nil>
	// kvqueue: the queue is closed
}

func ExampleItem_Err() {
	ctx, q, done := filled(nil, "a")
	defer done()
	_ = q.Do(ctx, 1, func(ctx context.Context, items []kvqueue.Item) error {
		fmt.Println(items[0].Err())
		_ = q.Ack(ctx, items...)
		fmt.Println(errors.Is(items[0].Err(), kvqueue.ErrSettled))
		return nil
	})
	// Output:
	// <nil>
	// true
}

func ExampleParseKey() {
	ctx, q, done := filled(nil)
	defer done()
	pos, _ := q.Enqueue(ctx, []byte("a"))
	k, err := kvqueue.ParseKey(pos.First.String())
	fmt.Println(k == pos.First, err)
	_, err = kvqueue.ParseKey("a")
	fmt.Println(err)
	// Output:
	// true <nil>
	// kvqueue: "a" is no key of an item: those have 40 hexadecimal digits
}

func ExamplePrefix() {
	ctx, q, done := filled([]kvqueue.Option{kvqueue.Prefix("staging")}, "a")
	defer done()
	fmt.Println(q.Len(ctx))
	// Output: {1 0 0 0} <nil>
}

func ExampleTTL() {
	_, err := kvqueue.Open(context.Background(), memkv.New(), "orders", kvqueue.TTL(time.Millisecond))
	fmt.Println(err)
	// Output: kvqueue: TTL: 1ms is not from 500ms to 24h
}

func ExampleMaxAttempts() {
	ctx, q, done := filled([]kvqueue.Option{kvqueue.MaxAttempts(2)}, "a")
	defer done()
	for range 2 {
		_ = q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return errors.New("it fails") })
	}
	fmt.Println(q.Len(ctx))
	// Output: {0 0 1 0} <nil>
}

func ExampleMaxCrashes() {
	_, err := kvqueue.Open(context.Background(), memkv.New(), "orders", kvqueue.MaxCrashes(0))
	fmt.Println(err)
	// Output: kvqueue: MaxCrashes: 0 is less than 1
}

func ExampleRetryDelay() {
	ctx, q, done := filled([]kvqueue.Option{kvqueue.RetryDelay(time.Hour, 24*time.Hour)}, "a", "b")
	defer done()
	_ = q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return errors.New("not now") })
	_ = q.Do(ctx, 2, show) // a comes back in an hour
	// Output: b, attempt 1
}

func ExampleRetention() {
	ctx, q, done := filled([]kvqueue.Option{kvqueue.Retention(time.Hour)})
	defer done()
	fmt.Println(q.Policy().Retention)
	p, err := q.Configure(ctx, kvqueue.Retention(7*24*time.Hour))
	fmt.Println(p.Retention, err)
	// Output:
	// 1h0m0s
	// 168h0m0s <nil>
}

func ExampleTimeLimit() {
	ctx, q, done := filled([]kvqueue.Option{kvqueue.TimeLimit(time.Millisecond)}, "a")
	defer done()
	err := q.Do(ctx, 1, func(ctx context.Context, _ []kvqueue.Item) error { return async.Sleep(ctx, time.Hour) })
	fmt.Println(err)
	// Output: async: kvqueue orders: context deadline exceeded (limit 1ms, waited 1ms)
}

func ExampleObserve() {
	ctx, q, done := filled([]kvqueue.Option{kvqueue.Observe(func(r kvqueue.Report) { fmt.Println(r.Kind, r.Items) })}, "a")
	defer done()
	_ = q.Do(ctx, 1, func(context.Context, []kvqueue.Item) error { return nil })
	// Output:
	// enqueued 1
	// claimed 1
	// acked 1
}

func ExampleOwner() {
	ctx, q, done := filled([]kvqueue.Option{kvqueue.Owner("the blue one")}, "a")
	defer done()
	_ = q.Do(ctx, 1, show)
	// Output: a, attempt 1
}

func ExampleCompact() {
	_, err := kvqueue.Open(context.Background(), memkv.New(), "orders", kvqueue.Compact(time.Millisecond))
	fmt.Println(err)
	// Output: kvqueue: Compact: 1ms is less than 1s: watches of other programs need some time
}

func ExampleCompactedElsewhere() {
	ctx, q, done := filled([]kvqueue.Option{kvqueue.CompactedElsewhere()}, "a")
	defer done()
	_ = q.Do(ctx, 1, show)
	// Output: a, attempt 1
}

func ExampleGroup() {
	ctx, q, done := filled(nil)
	defer done()
	for _, item := range []string{"ann: open", "ann: pay", "bob: open"} {
		name, _, _ := strings.Cut(item, ":")
		if _, err := q.Add(ctx, []byte(item), kvqueue.Group(name)); err != nil {
			panic(err)
		}
	}
	_ = q.Do(ctx, 10, func(ctx context.Context, items []kvqueue.Item) error {
		fmt.Println("at once:")
		_ = show(ctx, items)
		fmt.Println("then:")
		return nil
	})
	_ = q.Do(ctx, 10, show)
	// Output:
	// at once:
	// ann: open, attempt 1
	// bob: open, attempt 1
	// then:
	// ann: pay, attempt 1
}
