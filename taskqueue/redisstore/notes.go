package redisstore

import (
	"context"

	"github.com/ambit-go/ambit/taskqueue"
)

// changeNotes changes notes if nobody has done so since they were read: the field without a name counts.
var changeNotes = newScript(`local notes = KEYS[1]
if (redis.call('HGET', notes, '') or '') ~= ARGV[1] then return 0 end
redis.call('HINCRBY', notes, '', 1)
for i = 2, #ARGV, 2 do
  if ARGV[i + 1] == '' then redis.call('HDEL', notes, ARGV[i]) else redis.call('HSET', notes, ARGV[i], ARGV[i + 1]) end
end
return 1`)

// Notes is a method of taskqueue.NoteStore.
func (s *Store) Notes(ctx context.Context, queue string, names []string) (map[string][]byte, error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return nil, err
	}
	found := map[string][]byte{}
	if len(names) == 0 {
		return found, nil
	}
	call := []any{"hmget", s.notesKey(queue)}
	for _, name := range names {
		call = append(call, name)
	}
	step := sending{s: s}
	got, err := step.do(ctx, call)
	if err != nil {
		return nil, step.told(err)
	}
	for i, value := range list(got) {
		if value != nil {
			found[names[i]] = []byte(text(value))
		}
	}
	return found, nil
}

func (s *Store) notesKey(queue string) string { return s.base(queue) + "notes" }

// ChangeNotes is a method of taskqueue.NoteStore.
func (s *Store) ChangeNotes(ctx context.Context, queue string, names []string, f func(map[string][]byte)) error {
	for {
		notes, err := s.Notes(ctx, queue, append([]string{""}, names...))
		if err != nil {
			return err
		}
		call := []any{"evalsha", changeNotes.hash, 1, s.notesKey(queue), notes[""]}
		delete(notes, "")
		f(notes)
		for name, value := range notes {
			call = append(call, name, value)
		}
		got, err := s.eval(ctx, changeNotes, call)
		if err != nil || integer(got) == 1 {
			return err
		}
	}
}
