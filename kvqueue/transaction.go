package kvqueue

import "encoding/binary"

// A transaction is what is to be committed, step by step of the items' lives: an item is
// ready, claimed or dead, and each step takes it from one of these to the next.
type transaction struct {
	q      *Queue
	guards []Guard
	writes []Write
}

// added adds an item to the queue of a layout.
func (t *transaction) added(lay layout, k Key, item []byte, group string) {
	rec := newRecord(item, group)
	t.writes = append(t.writes,
		Write{Key: lay.data(k), Value: item},
		Write{Key: lay.place(k, group), Value: rec.encode()})
	t.mark(lay, group)
}

// claimed demands that a session has the item, with this fence, and takes it from there. Its group is free then.
func (t *transaction) claimed(session int64, k Key, fence Rev, group string) {
	key := t.q.lay.claim(session, k)
	t.guards = append(t.guards, Guard{Key: key, Is: Unchanged, Rev: fence})
	t.writes = append(t.writes, Write{Key: key, Delete: true})
	t.free(group)
}

// claim takes a ready item to a session, together with so many others.
func (t *transaction) claim(session int64, r ready, together int) {
	key := t.q.lay.place(r.key, r.rec.group)
	t.guards = append(t.guards, Guard{Key: key, Is: Unchanged, Rev: r.rev})
	more := append(binary.AppendUvarint(nil, uint64(together)), r.rec.group...)
	t.writes = append(t.writes,
		Write{Key: key, Delete: true},
		Write{Key: t.q.lay.claim(session, r.key), Value: r.rec.encode(more...)})
	if r.rec.group != "" {
		t.hold(r.key, r.rec.group)
	}
}

// gone ends an item.
func (t *transaction) gone(k Key) {
	t.writes = append(t.writes, Write{Key: t.q.lay.data(k), Delete: true})
}

// back puts an item to its old place.
func (t *transaction) back(k Key, r record) {
	t.writes = append(t.writes, Write{Key: t.q.lay.place(k, r.group), Value: r.encode()})
	t.mark(t.q.lay, r.group)
}

// buried makes an item a dead letter. Its group may have waited, so that no marker is there.
func (t *transaction) buried(k Key, r record, why string) {
	t.writes = append(t.writes, Write{Key: t.q.lay.dead(k), Value: encodeDead(r, why)})
	t.mark(t.q.lay, r.group)
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
