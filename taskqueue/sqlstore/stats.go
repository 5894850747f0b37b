package sqlstore

import (
	"context"
	"strings"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/limit"
)

// Stats is a method of taskqueue.Store. It counts what the indexes have, and looks at no task: a fraction of a second
// for a million of them.
func (s *Store) Stats(ctx context.Context, queue string) (stats taskqueue.Stats, err error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return stats, err
	}
	err = s.db.transact(ctx, reads, func(t tx) error {
		var now moment
		settings, limits := "", ""
		stats = taskqueue.Stats{Queue: queue, States: map[taskqueue.State]int64{}, Counts: map[taskqueue.Counter]int64{}}
		if err := t.run(query{clock: &now}, row("SELECT settings, "+limitsOf+" FROM tq_queue WHERE queue = $1", []any{queue}, &settings, &limits)); err != nil {
			return err
		}
		set, err := limit.Parse(limits)
		if err != nil {
			return err
		}
		if stats.Settings, err = readSettings(settings); err != nil {
			return err
		}
		if set != nil && len(set.Limits) > 0 {
			stats.Limits = set.Limits
		}
		return countAll(t, &stats, now)
	})
	return stats, err
}

const (
	readyText  = "SELECT count(*) FROM tq_task WHERE queue = $1 AND class = $2 AND state < 3 AND due <= $3"
	laterText  = "SELECT count(*) FROM tq_task WHERE queue = $1 AND class = $2 AND state < 3 AND due > $3"
	oldestText = "SELECT due FROM tq_task WHERE queue = $1 AND class = $2 AND state < 3 AND due <= $3 ORDER BY due LIMIT 1"
	endedText  = "SELECT state, count(*) FROM tq_task WHERE queue = $1 AND state > 4 GROUP BY state"
	parkedText = "SELECT count(*) FROM tq_task WHERE queue = $1 AND state = 4"
)

func countAll(t tx, stats *taskqueue.Stats, now moment) error {
	queue := stats.Queue
	var ready, later, retries, runs int64
	queries := []query{
		row("SELECT count(*) FROM tq_task WHERE queue = $1 AND state = 2 AND due > $2", []any{queue, now.wall}, &retries),
		row(runningText, []any{queue}, &runs),
		row(parkedText, []any{queue}, &stats.Limited),
		eachRow(endedText, []any{queue}, each2(func(state, n int64) { stats.States[readState(state)] = n })),
	}
	for class := range taskqueue.Priorities {
		args := []any{queue, int64(class), now.wall}
		add := func(text string, to *int64) {
			queries = append(queries, eachRow(text, args, each1(func(n int64) { *to += n })))
		}
		add(readyText, &ready)
		add(laterText, &later)
		queries = append(queries, eachRow(oldestText, args, each1(func(first int64) {
			stats.Latest = max(stats.Latest, timeOf(now.wall).Sub(timeOf(first)))
		})))
	}
	sums := make([]string, len(counters))
	counts := make([]int64, len(counters))
	into := make([]any, len(counters))
	for i, c := range counters {
		sums[i], into[i] = "CAST(coalesce(sum("+string(c)+"), 0) AS BIGINT)", &counts[i]
	}
	queries = append(queries, row("SELECT "+strings.Join(sums, ", ")+" FROM tq_worker WHERE queue = $1", []any{queue}, into...))
	if err := t.end(queries...); err != nil {
		return err
	}
	for i, c := range counters {
		if counts[i] != 0 {
			stats.Counts[c] = counts[i]
		}
	}
	stats.States[taskqueue.StateReady], stats.States[taskqueue.StateRunning] = ready+stats.Limited, runs
	stats.States[taskqueue.StateRetrying], stats.States[taskqueue.StateScheduled] = retries, later-retries
	return nil
}
