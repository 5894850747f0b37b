package kvqueue

import "encoding/binary"

// A transaction is what is to be committed, step by step of the items' lives: an item is
// ready, claimed or dead, and each step takes it from one of these to the next.
type transaction struct {
	q      *Queue
	guards []Guard
	writes []Write
}

// item adds an item to a queue.
func (t *transaction) item(q *Queue, k Key, item []byte) {
	t.writes = append(t.writes,
		Write{Key: q.lay.data(k), Value: item},
		Write{Key: q.lay.ready(k), Value: newRecord(item).encode()})
}

// claimed demands that a session has the item, with this fence, and takes it from there.
func (t *transaction) claimed(session int64, k Key, fence Rev) {
	key := t.q.lay.claim(session, k)
	t.guards = append(t.guards, Guard{Key: key, Is: Unchanged, Rev: fence})
	t.writes = append(t.writes, Write{Key: key, Delete: true})
}

// claim takes a ready item to a session, together with so many others.
func (t *transaction) claim(session int64, r ready, together int) {
	key := t.q.lay.ready(r.key)
	t.guards = append(t.guards, Guard{Key: key, Is: Unchanged, Rev: r.rev})
	t.writes = append(t.writes,
		Write{Key: key, Delete: true},
		Write{Key: t.q.lay.claim(session, r.key), Value: r.rec.encode(binary.AppendUvarint(nil, uint64(together))...)})
}

// gone ends an item.
func (t *transaction) gone(k Key) {
	t.writes = append(t.writes, Write{Key: t.q.lay.data(k), Delete: true})
}

// back puts an item to its old place.
func (t *transaction) back(k Key, r record) {
	t.writes = append(t.writes, Write{Key: t.q.lay.ready(k), Value: r.encode()})
}

// buried makes an item a dead letter.
func (t *transaction) buried(k Key, r record, why string) {
	t.writes = append(t.writes, Write{Key: t.q.lay.dead(k), Value: r.encode([]byte(why)...)})
}

// lower lets items go back to places from a hint on: the floor is put there if it is above,
// and else must not have been raised beyond.
func (t *transaction) lower(h head, hint uint64) {
	if h.floor <= hint {
		t.guards = append(t.guards, t.q.lay.floorAtMost(hint))
		return
	}
	guard, write := t.q.lay.putHead(head{floor: hint, offset: h.offset, rev: h.rev})
	t.guards, t.writes = append(t.guards, guard), append(t.writes, write)
}
