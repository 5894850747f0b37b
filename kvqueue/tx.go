package kvqueue

import (
	"bytes"
	"context"
	"slices"
)

// A Tx is what a caller adds to a transaction: to that with which items are acknowledged, or to one
// of its own. It may be used while the function lasts that was given to [Queue.Commit] or
// [Queue.Transact].
type Tx struct {
	q      *Queue
	method string // for errors
	guards []Guard
	writes []Write
	adds   []addition
	err    error
}

// An addition is items for another queue.
type addition struct {
	to    *Queue
	items [][]byte
	added
	repeat bool // an item has the id, as the last try has seen it
}

// Put writes a key of the caller's own. Keys with the prefix of the queues are refused.
func (t *Tx) Put(key, value []byte) {
	t.own(key)
	t.writes = append(t.writes, Write{Key: bytes.Clone(key), Value: bytes.Clone(value)})
}

// Delete deletes a key of the caller's own.
func (t *Tx) Delete(key []byte) {
	t.own(key)
	t.writes = append(t.writes, Write{Key: bytes.Clone(key), Delete: true})
}

// If has the transaction done only if the guard holds; otherwise Commit returns
// [ErrConflict], and the items are as they were.
func (t *Tx) If(g Guard) {
	g.Key, g.End, g.Value = bytes.Clone(g.Key), bytes.Clone(g.End), bytes.Clone(g.Value)
	if g.End != nil && g.Is != Absent {
		t.fail(invalid("Tx.If", "of a range it can only be demanded that no key of it exists, by Absent"))
	}
	t.guards = append(t.guards, g)
}

// Enqueue adds items at the end of a queue in the same store, which may be this one.
func (t *Tx) Enqueue(to *Queue, items ...[]byte) {
	switch {
	case to == nil:
		t.fail(invalid("Tx.Enqueue", "the queue is nil"))
	case to.kv != t.q.kv:
		t.fail(invalid("Tx.Enqueue", "%q is in another store, and no transaction spans two", to.name))
	default:
		a := addition{to: to, items: make([][]byte, len(items))}
		for i, item := range items {
			a.items[i] = bytes.Clone(item)
		}
		t.adds = append(t.adds, a)
	}
}

func (t *Tx) own(key []byte) {
	if slices.ContainsFunc(t.writes, func(w Write) bool { return bytes.Equal(w.Key, key) }) {
		t.fail(invalid("Tx", "the key %q is written twice: a transaction has one value for it", key))
	}
	if root := escape(t.q.set.prefix) + "/"; bytes.HasPrefix(key, []byte(root)) {
		t.fail(invalid("Tx", "the key %q belongs to the queues, which are under %q", key, root))
	}
}

func (t *Tx) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// collect calls f, and returns what it wants. It refuses what does not fit into a transaction
// beside so many guards and writes.
func (q *Queue) collect(method string, f func(tx *Tx), guards, writes int) (*Tx, error) {
	tx := &Tx{q: q, method: method}
	if f != nil {
		f(tx)
	}
	if tx.err != nil {
		return nil, tx.err
	}
	return tx, tx.fits(guards+len(tx.guards), writes+len(tx.writes))
}

func (t *Tx) tellAdded() {
	for _, a := range t.adds {
		if !a.repeat {
			a.to.tell(Report{Kind: Enqueued, Items: len(a.items)})
		}
	}
}

func (t *Tx) fits(guards, writes int) error {
	limits, size := t.q.limits, 0
	for _, w := range t.writes {
		size += len(w.Key) + len(w.Value)
	}
	to := map[*Queue]bool{}
	for _, a := range t.adds {
		if !to[a.to] { // its floor, and its bell
			to[a.to], guards, writes = true, guards+1, writes+1
		}
		writes += 2 * len(a.items)
		if a.id != "" {
			guards, writes, size = guards+1, writes+2, size+a.to.lay.idSize(a.id)
		}
		if a.group != "" { // its marker, and the version of the layout
			guards, writes = guards+1, writes+2
		}
		for _, item := range a.items {
			size += len(item) + 2*len(a.to.lay.root) + 64
		}
	}
	switch {
	case guards > limits.Guards:
		return invalid(t.method, "it has %d guards with those of the queues, and a transaction holds %d", guards, limits.Guards)
	case writes > limits.Writes:
		return invalid(t.method, "it has %d writes with those of the queues, and a transaction holds %d", writes, limits.Writes)
	case size > limits.Bytes*2/3:
		return invalid(t.method, "it has %d bytes, and a transaction holds %d", size, limits.Bytes*2/3)
	}
	return nil
}

// add adds the items of a Tx to their queues.
func (t *transaction) add(ctx context.Context, tx *Tx, producer uint64) error {
	var n uint32
	rung := map[*Queue]bool{}
	for i := range tx.adds {
		a := &tx.adds[i]
		s, err := a.to.read(ctx, append([]Range{a.to.lay.version()}, a.to.lay.idRanges(a.id)...)...)
		if err != nil {
			return err
		}
		if a.group != "" {
			t.raise(a.to.lay, s.of[0])
		}
		if !rung[a.to] {
			rung[a.to] = true
			t.guards = append(t.guards, a.to.lay.floorAtMost(s.now()))
			t.writes = append(t.writes, Write{Key: append(a.to.lay.all("n"), 'c')})
		}
		if a.id != "" {
			first := t.identify(a.to, a.id, s.of[1], newKey(s.now(), producer, n))
			before := slices.ContainsFunc(tx.adds[:i], func(b addition) bool { return b.to.lay == a.to.lay && b.id == a.id })
			a.repeat = first != nil && (before || first.producer() != producer) // else an earlier try was done, whose answer was lost
			if first != nil {
				continue
			}
		}
		for _, item := range a.items {
			t.added(a.to.lay, newKey(s.now(), producer, n), item, a.group)
			n++
		}
	}
	return nil
}
