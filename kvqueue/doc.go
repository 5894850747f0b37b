// Package kvqueue is a durable queue, first in, first out, on an ordered store with
// transactions over several keys: etcd for many machines, SQLite for one, memory for tests.
//
//	kv := etcdkv.New(client)
//	q, err := kvqueue.Open(ctx, kv, "orders", kvqueue.CompactedElsewhere())
//	...
//	_, err = q.Enqueue(ctx, []byte("order 1"))
//	err = q.Consume(ctx, 8, 1, func(ctx context.Context, items []kvqueue.Item) error {
//		return ship(ctx, items[0].Value)
//	})
//
// # Claims
//
// An item is claimed, and its claim is a scope of package async: the item is acknowledged when
// the handler and everything that it has started ended well; it goes back to its old place
// when they failed. It is tried at least once, and more often if a process goes away or
// cannot reach the store: a handler must be safe to repeat, or do its work in the
// transaction of the acknowledgement ([Queue.Commit]).
//
// A process tells the store again and again that it lives. If it could not do so in time
// the contexts of what it has claimed are cancelled, with a [*LostError] as their cause,
// before the store gives the items to others.
//
// # Order
//
// The items of one process are in its order. An item whose Enqueue began after that of
// another had returned is behind that, whichever processes they were. Items are claimed in
// this order. Those that come back stand in their old places, so before all that came
// later.
//
// Items of a [Group] are claimed one after another, each after the one before it was settled. Those of
// different groups are in no order.
//
// # Cost
//
// Calls of one handle share transactions: a process needs one handle on a queue, however
// many goroutines use it. One of the handles that wait for items assigns them to all, so that
// they do not keep each other from getting on. Each handle has one watch.
//
// The model is the queue recipe of FoundationDB; what is
// different, and why, is in docs/kvqueue.md.
package kvqueue
