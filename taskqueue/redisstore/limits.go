package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/limit"
)

// SetLimit is a method of taskqueue.Store.
func (s *Store) SetLimit(ctx context.Context, queue string, l taskqueue.Limit) error {
	if err := errors.Join(taskqueue.CheckName("queue", queue), taskqueue.CheckLimit(l)); err != nil {
		return err
	}
	if err := errors.Join(s.register(ctx, queue), s.limitsAreKnown(ctx)); err != nil && !redis.HasErrorPrefix(err, "OOM") {
		return err
	}
	for {
		got, err := s.run(ctx, s.scripts.look, queue, "settings", "limits")
		if err != nil {
			return err
		}
		before := text(got)
		after, err := limit.Changed(before, l)
		if err != nil || after == before {
			return err
		}
		if got, err = s.run(ctx, s.scripts.configure, queue, before, after, "limits"); err != nil || integer(got) == 1 {
			return err
		}
	}
}

// limitsAreKnown notes that programs which know nothing of limits are to be refused from now on.
func (s *Store) limitsAreKnown(ctx context.Context) error {
	if s.limited.Load() {
		return nil
	}
	if err := s.client.Set(ctx, s.formatKey(), format, 0).Err(); err != nil {
		return fmt.Errorf("taskqueue: redis: %w", err)
	}
	s.limited.Store(true)
	return nil
}

// haveLimitKeys reports whether one of the tasks has a LimitKey.
func haveLimitKeys(tasks []taskqueue.Task) bool {
	return slices.ContainsFunc(tasks, func(t taskqueue.Task) bool { return t.LimitKey != "" })
}
