package kvqueue

import (
	"context"
	"fmt"
)

// An AddOption says something of an item beside its payload: see [ID] and [Group].
type AddOption interface{ applyAdd(*added) }

// added is what the options of an item say.
type added struct {
	id    string // empty: none
	group string // as the keys have it; empty: none
	err   error  // of an option that makes no sense
}

type addOption func(*added)

func (o addOption) applyAdd(a *added) { o(a) }

// readAdded returns what options say of an item of q.
func (q *Queue) readAdded(options []AddOption) (a added, err error) {
	for _, o := range options {
		if o == nil {
			return a, invalid("option", "it is nil: leave it out")
		}
		if o.applyAdd(&a); a.err != nil {
			return a, a.err
		}
	}
	if a.group != "" && (q.maxItems < 2 || q.limits.Bytes < leastForGroups) {
		return a, invalid("Group", "the transactions of this store are too small for it: %+v", q.limits)
	}
	return a, nil
}

// Add adds one item at the end of the queue, with what the options say of it, and returns its key:
// where it stands.
//
//	key, err := q.Add(ctx, order, kvqueue.ID("order-17"), kvqueue.Group("customer-17"))
//
// Without options it is [Queue.Enqueue] of one item: it blocks as long, shares transactions with the
// other calls of the handle, and has the same order and errors. An option that makes no sense, or an item
// that is too large with it, is an [*InvalidError], and nothing was added.
func (q *Queue) Add(ctx context.Context, item []byte, options ...AddOption) (Key, error) {
	a, err := q.readAdded(options)
	if err != nil {
		return Key{}, err
	}
	size := len(item) + q.lay.idSize(a.id)
	one := &appending{added: a, items: [][]byte{append([]byte{}, item...)}, bytes: size, at: new(Position)}
	switch {
	case size > q.maxItem:
		const why = "the item has %d bytes with its id, and %d is the most: store it elsewhere and add its name"
		return Key{}, invalid("Add", why, size, q.maxItem)
	case ctx.Err() != nil:
		return Key{}, stop(ctx)
	}
	open, err := q.enqueues.do(ctx, one)
	switch {
	case open:
		return Key{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	case err != nil:
		return Key{}, err
	case one.at.Items > 0:
		q.tell(Report{Kind: Enqueued, Items: one.at.Items})
	}
	return one.at.First, nil
}

// Add adds an item at the end of a queue in the same store, which may be this one, with what the options
// say of it. A repeat of an [ID] adds nothing: the rest of the transaction is done, if that id stands then.
func (t *Tx) Add(to *Queue, item []byte, options ...AddOption) {
	before := len(t.adds)
	if t.Enqueue(to, item); len(t.adds) == before { // it was refused
		return
	}
	a, err := to.readAdded(options)
	if err != nil {
		t.fail(err)
		return
	}
	t.adds[before].added = a
}
