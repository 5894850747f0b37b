package sqlstore

import (
	"context"
	"maps"
	"slices"

	"github.com/ambit-go/ambit/taskqueue"
)

var (
	readNotes   = reading("tq_note", "id, value", "")
	saveNotes   = upsertion("tq_note", "value", column{"queue", "text"}, column{"id", "text"}, column{"value", "bytea"})
	removeNotes = removal("tq_note", idColumns...)
)

// notes is the query of notes by their names, into a map.
func notes(queue string, ids []string, into map[string][]byte) query {
	q := query{bulk: readNotes, each: each2(func(id string, value []byte) { into[id] = value })}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		q.rows = append(q.rows, []any{queue, id})
	}
	return q
}

// Notes is a method of taskqueue.NoteStore.
func (s *Store) Notes(ctx context.Context, queue string, ids []string) (found map[string][]byte, err error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return nil, err
	}
	err = s.db.transact(ctx, reads, func(t tx) error {
		found = map[string][]byte{}
		return t.end(notes(queue, ids, found))
	})
	return found, err
}

// ChangeNotes is a method of taskqueue.NoteStore. A note without a name is what all who change notes of the queue
// lock.
func (s *Store) ChangeNotes(ctx context.Context, queue string, ids []string, f func(map[string][]byte)) error {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return err
	}
	return s.db.transact(ctx, writes, func(t tx) error {
		found := map[string][]byte{}
		lock := ""
		err := t.run(statement("INSERT INTO tq_note VALUES ($1, '', '') ON CONFLICT DO NOTHING", queue),
			row("SELECT id FROM tq_note WHERE queue = $1 AND id = '' {lock}", []any{queue}, &lock), notes(queue, ids, found))
		if err != nil {
			return err
		}
		before := maps.Clone(found)
		f(found)
		save, remove := query{bulk: saveNotes}, query{bulk: removeNotes}
		for id, value := range found {
			switch {
			case value == nil:
				remove.rows = append(remove.rows, []any{queue, id})
			case string(value) != string(before[id]):
				save.rows = append(save.rows, []any{queue, id, value})
			}
		}
		return t.end(save, remove)
	})
}
