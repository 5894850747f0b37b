package kvqueue

import "context"

// An AddOption says more of an item that is added: see [Group].
type AddOption interface{ applyAdd(*added) }

// An added is what the options of an item say.
type added struct {
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

// Add adds one item at the end of the queue, as [Queue.Enqueue] does, and returns its key. Options say
// more of the item:
//
//	_, err := q.Add(ctx, order, kvqueue.Group("customer-17"))
//
// Calls of Add and Enqueue share transactions. Add blocks as Enqueue does, and its errors are those of
// Enqueue: one that matches [ErrUnknown] says that the item was added, or not.
func (q *Queue) Add(ctx context.Context, item []byte, options ...AddOption) (Key, error) {
	a, err := q.readAdded(options)
	if err != nil {
		return Key{}, err
	}
	parts, err := q.parts([][]byte{item})
	if err != nil {
		return Key{}, err
	}
	parts[0].group = a.group
	pos, err := q.enqueue(ctx, parts)
	return pos.First, err
}

// Add adds one item at the end of a queue in the same store, as [Queue.Add] does.
func (t *Tx) Add(to *Queue, item []byte, options ...AddOption) {
	before := len(t.adds)
	if t.Enqueue(to, item); len(t.adds) == before { // it was refused
		return
	}
	a, err := to.readAdded(options)
	if err != nil {
		t.fail(err)
	}
	t.adds[before].group = a.group
}

// added adds an item to the queue of a layout.
func (t *transaction) added(lay layout, k Key, item []byte, group string) {
	rec := record{size: uint64(len(item)), group: group}
	t.writes = append(t.writes,
		Write{Key: lay.data(k), Value: item},
		Write{Key: lay.place(k, group), Value: rec.encode()})
	t.mark(lay, group)
}
