package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/classes"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// A Store is a taskqueue.Store. Use New.
type Store struct {
	client  redis.UniversalClient
	prefix  string
	warn    func(string)
	scripts scripts
	hints   hints
	batches batches
	keys    keys
	known   sync.Map // queue -> when it was registered
	closed  atomic.Bool
	limited atomic.Bool           // the format of limits is noted
	own     redis.UniversalClient // made by open; nil: it is the caller's
}

// names are the ends of the keys of a queue, in the order in which the scripts know them.
var names = []string{
	"due:7", "due:6", "due:5", "due:4", "due:3", "due:2", "due:1", "due:0",
	"run", "retry", "dead", "done", "cancelled", "forget", "p", "s", "u", "n", "c", "t", "sleep",
	"waiting", "edges", "left", "release",
	"limited", "held", "pace", "wakes", // the last; see limits.lua
}

// base is what the keys of a queue begin with. The name of the queue is their hash
// tag, escaped, so that it has no braces.
func (s *Store) base(queue string) string { return s.prefix + ":{" + url.QueryEscape(queue) + "}:" }

func (s *Store) channel(queue string) string { return s.base(queue) + "wake" }

func (s *Store) registry() string { return s.prefix + ":queues" }

// Enqueue is a method of taskqueue.Store. Calls that come at the same time are sent
// together.
func (s *Store) Enqueue(ctx context.Context, queue string, tasks []taskqueue.Task) ([]taskqueue.Result, error) {
	if err := taskqueue.CheckTasks(tasks); err != nil {
		return nil, err
	}
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return nil, err
	}
	if haveLimitKeys(tasks) {
		if err := s.limitsAreKnown(ctx); err != nil {
			return nil, err
		}
	}
	return s.batches.enqueue(ctx, queue, tasks)
}

func appendTask(args []any, t *taskqueue.Task) []any {
	delay := max(t.Delay, 0)
	return append(args, t.ID, pack(t), int64((delay+time.Microsecond-1)/time.Microsecond), micros(t.RunAt.Add(roundUp(t.RunAt))))
}

// roundUp is what is to be added to t so that it is not early in microseconds.
func roundUp(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return time.Microsecond - 1
}

// registered is how long the name of a queue is taken for noted. A server that has
// lost its last second, or everything, hears it again.
const registered = time.Minute

// register notes the name of a queue.
func (s *Store) register(ctx context.Context, queue string) error {
	if at, known := s.known.Load(queue); known && time.Since(at.(time.Time)) < registered {
		return nil
	}
	err := s.client.SetNX(ctx, s.formatKey(), plainFormat, 0).Err()
	if err == nil {
		err = s.client.SAdd(ctx, s.registry(), queue).Err()
	}
	if err != nil {
		return fmt.Errorf("taskqueue: redis: %w", err)
	}
	s.known.Store(queue, time.Now())
	return nil
}

// Claim is a method of taskqueue.Store.
func (s *Store) Claim(ctx context.Context, r store.ClaimRequest) (c taskqueue.Claimed, err error) {
	if err := taskqueue.CheckClaim(r); err != nil {
		return c, err
	}
	order := make([]byte, 0, taskqueue.Priorities)
	for _, class := range classes.Order(r.Weigh) {
		order = append(order, byte('1'+class))
	}
	seen, name := s.hints.seen(s.channel(r.Queue), r.Worker) // before it is sent: what comes meanwhile is not forgotten
	c.Seen = seen
	got, err := s.run(ctx, s.scripts.claim, r.Queue, r.Worker, r.Nonce, min(max(r.Max, 0), taskqueue.MaxBatch), lease(r.Lease), order, name)
	if err != nil {
		return c, err
	}
	answer := list(got)
	c.Now, c.NextDue = fromMicros(integer(answer[0])), fromMicros(integer(answer[1]))
	if len(answer) > 3 { // not that of a claim that was repeated
		for _, id := range list(answer[3]) {
			c.Dead = append(c.Dead, text(id))
		}
		c.Trimmed = int(integer(answer[4]))
	}
	c.Tasks, err = infos(r.Queue, answer[2], time.Time{})
	return c, err
}

// lease is d in µs, at least 1.
func lease(d time.Duration) int64 { return max(d.Microseconds(), 1) }

// Extend is a method of taskqueue.Store.
func (s *Store) Extend(ctx context.Context, r store.ExtendRequest) ([]store.ExtendResult, error) {
	if err := taskqueue.CheckExtend(r); err != nil {
		return nil, err
	}
	args := append(make([]any, 0, 2+4*len(r.Refs)), r.Worker, lease(r.Lease))
	for _, ref := range r.Refs {
		progress, given := r.Progress[ref.ID]
		args = append(args, ref.ID, ref.Token, boolean(given), progress)
	}
	got, err := s.run(ctx, s.scripts.extend, r.Queue, args...)
	if err != nil {
		return nil, err
	}
	results := make([]store.ExtendResult, len(r.Refs))
	for i, v := range list(got) {
		results[i] = store.ExtendResult(integer(v))
	}
	return results, nil
}

// Settle is a method of taskqueue.Store.
func (s *Store) Settle(ctx context.Context, queue string, outcomes []store.Outcome) ([]store.SettleResult, error) {
	if err := taskqueue.CheckOutcomes(outcomes); err != nil {
		return nil, err
	}
	args := make([]any, 0, 6*len(outcomes))
	for _, o := range outcomes {
		args = append(args, o.ID, o.Token, int(o.Kind), o.Wait().Microseconds(), o.Error, o.Result)
	}
	got, err := s.run(ctx, s.scripts.settle, queue, args...)
	if err != nil {
		return nil, err
	}
	results := make([]store.SettleResult, len(outcomes))
	for i, v := range list(got) {
		results[i] = store.SettleResult(integer(v))
	}
	return results, nil
}

// Act is a method of taskqueue.Store.
func (s *Store) Act(ctx context.Context, queue, id string, act store.Act) (bool, error) {
	got, err := s.run(ctx, s.scripts.act, queue, id, int(act))
	if err != nil {
		return false, err
	}
	if held := list(got); len(held) == 2 {
		return false, &taskqueue.DuplicateError{UniqueKey: text(held[0]), Holder: text(held[1])}
	}
	if integer(got) < 0 {
		return false, taskqueue.ErrNotFound
	}
	return integer(got) == 1, nil
}

// Purge is a method of taskqueue.Store.
func (s *Store) Purge(ctx context.Context, queue string, state taskqueue.State, from string) (n int, next string, err error) {
	if state == taskqueue.StateRunning {
		return 0, "", &taskqueue.InvalidError{What: "state", Why: "running tasks cannot be deleted: cancel them first"}
	}
	class, score, id, err := cursor(from)
	if err != nil {
		return 0, "", err
	}
	got, err := s.run(ctx, s.scripts.purge, queue, "purge", int(state), class, score, id, taskqueue.MaxBatch)
	if err != nil {
		return 0, "", err
	}
	answer := list(got)
	return int(integer(answer[0])), cursorText(answer[1]), nil
}

// Configure is a method of taskqueue.Store.
func (s *Store) Configure(ctx context.Context, queue string, before, after taskqueue.Settings) (bool, error) {
	text, err := json.Marshal(after)
	if err := errors.Join(taskqueue.CheckName("queue", queue), taskqueue.CheckSettings(after), err); err != nil {
		return false, err
	}
	// A queue that is to be paused because the server is full is known already.
	if err := s.register(ctx, queue); err != nil && !redis.HasErrorPrefix(err, "OOM") {
		return false, err
	}
	known, err := s.run(ctx, s.scripts.look, queue, "settings", "settings")
	if err != nil {
		return false, err
	}
	set, err := readSettings(queue, known)
	if err != nil || set != before {
		return false, err
	}
	done, err := s.run(ctx, s.scripts.configure, queue, known, text, "settings")
	return integer(done) == 1, err
}

// readSettings reads the settings of a queue as they are stored.
func readSettings(queue string, v any) (set taskqueue.Settings, err error) {
	if stored := text(v); stored != "" {
		if err = json.Unmarshal([]byte(stored), &set); err != nil {
			err = fmt.Errorf("taskqueue: the settings of queue %s cannot be read: %w", queue, err)
		}
	}
	return set, err
}

// Tick is a method of taskqueue.Store.
func (s *Store) Tick(ctx context.Context, t taskqueue.Tick) (bool, error) {
	if err := taskqueue.CheckTick(t); err != nil {
		return false, err
	}
	if err := s.register(ctx, t.Queue); err != nil {
		return false, err
	}
	if haveLimitKeys([]taskqueue.Task{t.Task}) {
		if err := s.limitsAreKnown(ctx); err != nil {
			return false, err
		}
	}
	got, err := s.run(ctx, s.scripts.tick, t.Queue, appendTask([]any{t.Name, t.Schedule, micros(t.Defined), micros(t.At)}, &t.Task)...)
	if err != nil {
		return false, err
	}
	if integer(got) < 0 {
		return false, &taskqueue.InvalidError{What: "At", Why: fmt.Sprintf("%v is more than 15 minutes after the time of the server: set the clock of this machine", t.At)}
	}
	return integer(got) == 1, nil
}

// Unschedule is a method of taskqueue.Store.
func (s *Store) Unschedule(ctx context.Context, queue, name string) (bool, error) {
	if err := taskqueue.CheckName("queue", queue); err != nil {
		return false, err
	}
	step := sending{s: s, once: true}
	n, err := step.do(ctx, []any{"hdel", s.base(queue) + "t", name})
	if err != nil {
		return false, step.told(err)
	}
	return integer(n) == 1, nil
}

// Periodic is a method of taskqueue.Store.
func (s *Store) Periodic(ctx context.Context, queue string) ([]taskqueue.Periodic, error) {
	got, err := s.run(ctx, s.scripts.look, queue, "periodic")
	if err != nil {
		return nil, err
	}
	var all []taskqueue.Periodic
	for _, one := range list(got) {
		v := list(one)
		all = append(all, taskqueue.Periodic{Name: text(v[0]), Schedule: text(v[1]), Last: fromMicros(integer(v[2])), Defined: fromMicros(integer(v[3]))})
	}
	return all, nil
}

// Close is a method of taskqueue.Store. A client that was given to New stays open.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.batches.idle()
	err := s.hints.close()
	if s.own != nil {
		err = errors.Join(err, s.own.Close())
	}
	return err
}
