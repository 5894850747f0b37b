package redisstore

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/limit"
)

// Get is a method of taskqueue.Store.
func (s *Store) Get(ctx context.Context, queue, id string) (info taskqueue.Info, err error) {
	info, _, err = s.get(ctx, queue, id)
	return info, err
}

// get is Get; group is that of the limit which the task is under.
func (s *Store) get(ctx context.Context, queue, id string) (info taskqueue.Info, group string, err error) {
	got, err := s.run(ctx, s.scripts.look, queue, "get", id)
	if err != nil {
		return info, "", err
	}
	answer := list(got)
	if len(answer) < 2 {
		return info, "", taskqueue.ErrNotFound
	}
	if info, err = readInfo(queue, answer[1], fromMicros(integer(answer[0]))); err == nil {
		group = text(list(answer[1])[taskFields-1])
	}
	return info, group, err
}

// List is a method of taskqueue.Store.
func (s *Store) List(ctx context.Context, queue string, r taskqueue.ListRequest) (page taskqueue.Page, err error) {
	most := min(max(r.Max, 0), taskqueue.MaxBatch)
	if most == 0 {
		most = 100
	}
	class, score, id, err := cursor(r.Cursor)
	if err != nil {
		return page, err
	}
	got, err := s.run(ctx, s.scripts.look, queue, "list", int(r.State), class, score, id, most, boolean(r.Reverse))
	if err != nil {
		return page, err
	}
	answer := list(got)
	if page.Tasks, err = infos(queue, answer[1], fromMicros(integer(answer[0]))); err != nil {
		return page, err
	}
	page.Cursor = cursorText(answer[2])
	return page, nil
}

// cursorText is what cursor reads; "" if v is no cursor.
func cursorText(v any) string {
	if c := list(v); len(c) == 3 {
		return fmt.Sprintf("%d/%s/%s", integer(c[0]), text(c[1]), url.QueryEscape(text(c[2])))
	}
	return ""
}

// cursor reads a cursor that List has made: a class, a score and an id.
func cursor(c string) (class int, score, id string, err error) {
	if c == "" {
		return 1, "", "", nil
	}
	parts := strings.Split(c, "/") // no score has one
	if len(parts) == 3 {
		class, err = strconv.Atoi(parts[0])
		score = parts[1]
		if err == nil {
			id, err = url.QueryUnescape(parts[2])
		}
	}
	if len(parts) != 3 || err != nil || class < 1 {
		err = &taskqueue.InvalidError{What: "cursor", Why: "it is not one that List has returned"}
	}
	return class, score, id, err
}

// Queues is a method of taskqueue.Store.
func (s *Store) Queues(ctx context.Context) ([]string, error) {
	all, err := s.client.SMembers(ctx, s.registry()).Result()
	slices.Sort(all)
	return all, err
}

// Stats is a method of taskqueue.Store.
func (s *Store) Stats(ctx context.Context, queue string) (st taskqueue.Stats, err error) {
	got, err := s.run(ctx, s.scripts.look, queue, "stats")
	if err != nil {
		return st, err
	}
	answer := list(got)
	st = taskqueue.Stats{Queue: queue, States: map[taskqueue.State]int64{}, Counts: map[taskqueue.Counter]int64{}}
	st.Latest = time.Duration(integer(answer[0])) * time.Microsecond
	for state := taskqueue.StateScheduled; state <= taskqueue.StateCancelled; state++ {
		st.States[state] = integer(answer[state])
	}
	st.States[taskqueue.StateWaiting] = integer(answer[9])
	fields := list(answer[8])
	for i := 0; i+1 < len(fields); i += 2 {
		name, value := text(fields[i]), text(fields[i+1])
		if counter, is := strings.CutPrefix(name, "n:"); is {
			st.Counts[taskqueue.Counter(counter)], _ = strconv.ParseInt(value, 10, 64)
		}
		if name == "limited" {
			st.Limited, _ = strconv.ParseInt(value, 10, 64)
		}
		if name == "limits" {
			set, err := limit.Parse(value)
			if err != nil {
				return st, err
			}
			if set != nil && len(set.Limits) > 0 {
				st.Limits = set.Limits
			}
		}
		if name == "settings" {
			if st.Settings, err = readSettings(queue, value); err != nil {
				return st, err
			}
		}
	}
	return st, nil
}
