package sqlstore

import (
	"context"
	"errors"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/limit"
)

// SetLimit is a method of taskqueue.Store.
func (s *Store) SetLimit(ctx context.Context, queue string, l taskqueue.Limit) error {
	if err := errors.Join(taskqueue.CheckName("queue", queue), taskqueue.CheckLimit(l)); err != nil {
		return err
	}
	err := s.db.transact(ctx, writes, func(t tx) error {
		st := newStep(t, queue)
		before := ""
		if err := t.run(query{clock: &st.now}, statement(newQueueText, queue, ""),
			statement("INSERT INTO tq_pattern VALUES ($1, '') ON CONFLICT DO NOTHING", queue),
			row("SELECT limits FROM tq_pattern WHERE queue = $1 {lock}", []any{queue}, &before)); err != nil {
			return err
		}
		after, err := limit.Changed(before, l)
		if err != nil || after == before {
			return err
		}
		return t.end(append(s.tell(st), statement("UPDATE tq_pattern SET limits = $2 WHERE queue = $1", queue, after))...)
	})
	if err == nil {
		s.hints.wake(queue)
	}
	return err
}
