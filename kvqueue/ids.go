package kvqueue

import (
	"bytes"
	"slices"

	"github.com/ambit-go/ambit/async"
)

// maxID is how many bytes an id has at most.
const maxID = 1024

// ID gives an item an id: while the id stands a repeat of it adds nothing, and returns the key that the
// first call has got, or would have got. So a call that has returned [ErrUnknown] is repeated, by
// whatever process, and the item is in the queue once:
//
//	key, err := q.Add(ctx, order, kvqueue.ID("order-17"))
//	for errors.Is(err, kvqueue.ErrUnknown) && ctx.Err() == nil {
//		key, err = q.Add(ctx, order, kvqueue.ID("order-17"))
//	}
//
// An id is of one queue, and has from 1 to 1024 bytes, whatever they are; otherwise it is an
// [*InvalidError]. It stands as long as its item does, also as a dead letter, and for the [Retention]
// of the queue at least, counted from when the item was added. The payload of a repeat is not compared
// with the first. One of the calls with one id at the same time adds its item, and none sees an error of that.
func ID(id string) AddOption {
	return addOption(func(a *added) {
		switch a.id = id; {
		case id == "":
			a.err = invalid("ID", "it is empty: leave it out, or give what tells this item from all others")
		case len(id) > maxID:
			a.err = invalid("ID", "it has %d bytes, and %d is the most: give a hash of it", len(id), maxID)
		}
	})
}

// An id is two keys: i/<id>, which says what item has it, and j/<key of the item>, by which it is found
// when its time is over. Both come in the transaction that adds the item, and go in one, too.

func (l layout) id(id string) []byte    { return []byte(l.root + "i/" + escape(id)) }
func (l layout) idOfItem(k Key) []byte  { return l.of("j", k) }
func (l layout) idIn(key []byte) string { return string(key[len(l.root)+len("i/"):]) }

// idSize is how many bytes an id adds to a transaction, its guard included.
func (l layout) idSize(id string) int {
	if id == "" {
		return 0
	}
	return 2*len(l.id(id)) + len(l.idOfItem(Key{})) + len(id) + keySize
}

// idRanges is what is to be read to know whether an item is a repeat.
func (l layout) idRanges(id string) []Range {
	if id == "" {
		return nil
	}
	return []Range{{Begin: l.id(id)}}
}

// idsOf is what is to be read to know which of a batch are repeats: a key for each that has an id.
func (q *Queue) idsOf(batch []*request[*appending]) (ranges []Range) {
	for _, r := range batch {
		ranges = append(ranges, q.lay.idRanges(r.of.id)...)
	}
	return ranges
}

// hasID reports whether one of a batch has an id: a transaction has each once, so that all of a batch
// are counted alike, whichever try of it was done.
func hasID(batch []*request[*appending], id string) bool {
	return id != "" && slices.ContainsFunc(batch, func(r *request[*appending]) bool { return r.of.id == id })
}

// identify gives an id to the item that is about to be added to q at k. If an item has the id, it returns the
// key of that, and nothing is to be added. found is what was read of the id. The transaction is done only
// if it is so still: if the answer to one try is lost, and the next finds another item, the first
// try comes to nothing.
func (t *transaction) identify(q *Queue, id string, found Result, k Key) (first *Key) {
	key := q.lay.id(id)
	for _, w := range t.writes {
		if bytes.Equal(w.Key, key) { // it is twice in the transaction
			return (*Key)(w.Value)
		}
	}
	guard := Guard{Key: key, Is: Absent}
	if len(found.Pairs) > 0 {
		p := found.Pairs[0]
		guard = Guard{Key: key, Is: Unchanged, Rev: p.Rev}
		if len(p.Value) == keySize { // otherwise nobody of this package has written it, and Audit names it
			first = (*Key)(p.Value)
		}
	}
	t.guards = append(t.guards, guard)
	if first == nil {
		t.writes = append(t.writes, Write{Key: key, Value: k[:]}, Write{Key: q.lay.idOfItem(k), Value: []byte(id)})
		q.tendOnce.Do(func() {
			_ = q.group.Go(q.tendOwnIDs, async.Name("kvqueue: let the ids of "+q.name+" go"), async.Daemon())
		})
	}
	return first
}
