package taskqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// DefaultQueue is the queue that is meant where none is named.
const DefaultQueue = "default"

// A Queue is a queue of a store. Its methods may be called by any number of
// goroutines, and it needs no closing: the store does.
type Queue struct {
	store Store
	name  string
	opts  options
	*shared
}

// An Option changes a Queue.
type Option func(*options)

type options struct {
	maxPayload int
	observe    func(Event)
}

func (o *options) apply(opts []Option) {
	for _, opt := range opts {
		opt(o)
	}
}

// PayloadLimit is the largest payload that Enqueue accepts, in bytes. Defaults to
// [MaxPayload], and cannot be more than [MaxBatchBytes].
func PayloadLimit(n int) Option {
	return func(o *options) { o.maxPayload = min(max(n, 0), MaxBatchBytes) }
}

// New returns the queue of the name [DefaultQueue] in store. [Queue.In] gives the
// others.
func New(store Store, opts ...Option) (*Queue, error) {
	if store == nil {
		return nil, invalid("store", "it is nil: pass memstore.New(), or what filestore.Open or redisstore.New return")
	}
	q := &Queue{store: store, name: DefaultQueue, opts: options{maxPayload: MaxPayload}, shared: new(shared)}
	q.opts.apply(opts)
	return q, nil
}

// In returns the queue of that name in the same store.
func (q *Queue) In(name string) *Queue {
	other := *q
	other.name = name
	return &other
}

// Name returns the name of the queue.
func (q *Queue) Name() string { return q.name }

// Enqueue adds one task and returns its id. If a task of that ID is known already
// nothing is changed, and the id is returned: so an Enqueue whose answer was lost
// can be repeated. If another task holds the UniqueKey the error is a
// [*DuplicateError].
//
// With a [Store] that could not be reached the error is that of the store, and the
// task was added or not: repeat the call with the same ID to know.
func (q *Queue) Enqueue(ctx context.Context, t Task) (id string, err error) {
	results, err := q.EnqueueAll(ctx, []Task{t})
	if len(results) == 0 {
		return "", err
	}
	r := results[0]
	if r.Verdict == Duplicate {
		return "", &DuplicateError{UniqueKey: t.UniqueKey, Holder: r.ID}
	}
	return r.ID, err
}

// A DuplicateError says that another task holds the unique key.
type DuplicateError struct {
	UniqueKey string
	Holder    string // the ID of the task that holds it
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("taskqueue: the unique key %q is held by task %s", e.UniqueKey, e.Holder)
}

// EnqueueAll adds tasks and says what became of each. Those of one queue are added
// in one step, all or none, up to MaxBatch of them; queue after queue.
//
// Nothing is added if one of the tasks is not valid. If a queue fails the error says
// so, and the results of its tasks, and of those behind it, have no Verdict.
func (q *Queue) EnqueueAll(ctx context.Context, tasks []Task) ([]Result, error) {
	byQueue := map[string][]int{}
	var names []string
	ready := make([]NewTask, len(tasks))
	for i, t := range tasks {
		if err := q.complete(&t); err != nil {
			return nil, err
		}
		ready[i].Task = t
		if byQueue[t.Queue] == nil {
			names = append(names, t.Queue)
		}
		byQueue[t.Queue] = append(byQueue[t.Queue], i)
	}
	results := make([]Result, len(tasks))
	for _, name := range names {
		of := byQueue[name]
		batch := make([]NewTask, len(of))
		for i, at := range of {
			batch[i] = ready[at]
			results[at].ID = ready[at].ID
		}
		added, err := q.store.Enqueue(ctx, name, batch)
		if err != nil {
			return results, fmt.Errorf("taskqueue: queue %s: %w", name, err)
		}
		for i, at := range of {
			results[at] = added[i]
		}
	}
	return results, nil
}

// complete sets what t leaves open, and says what is wrong with it.
func (q *Queue) complete(t *Task) error {
	if t.Queue == "" {
		t.Queue = q.name
	}
	if t.ID == "" {
		t.ID = newID()
	}
	if t.MaxFailures == 0 {
		t.MaxFailures = DefaultMaxFailures
	}
	if t.MaxCrashes == 0 {
		t.MaxCrashes = DefaultMaxCrashes
	}
	err := errors.Join(CheckName("Type", t.Type), CheckName("Queue", t.Queue), CheckName("ID", t.ID))
	switch {
	case err != nil:
		return err
	case t.UniqueKey != "" && CheckName("UniqueKey", t.UniqueKey) != nil:
		return CheckName("UniqueKey", t.UniqueKey)
	case len(t.Payload) > q.opts.maxPayload:
		return invalid("Payload", "it has %d bytes, at most %d are allowed: store it elsewhere and enqueue where it is, or raise PayloadLimit", len(t.Payload), q.opts.maxPayload)
	case t.Priority >= Priorities:
		return invalid("Priority", "it is %d, the most urgent is %d", t.Priority, Priorities-1)
	case t.Delay != 0 && !t.RunAt.IsZero():
		return invalid("Delay", "it is set and RunAt, too: set one of them")
	case t.MaxFailures < 0 || t.MaxCrashes < 0 || t.Timeout < 0 || t.Retention < 0:
		return invalid("Task", "MaxFailures, MaxCrashes, Timeout and Retention cannot be negative")
	case t.Until > Start:
		return invalid("Until", "it is neither End nor Start")
	}
	t.Delay = max(t.Delay, 0)
	t.Payload = slices.Clone(t.Payload)
	return nil
}

// CheckName says what is wrong with a name, for stores: it must be UTF-8 without a
// zero byte, not empty, and at most MaxName bytes long.
func CheckName(what, s string) error {
	switch {
	case s == "":
		return invalid(what, "it must not be empty")
	case len(s) > MaxName:
		return invalid(what, "it has %d bytes, at most %d are allowed", len(s), MaxName)
	case !utf8.ValidString(s):
		return invalid(what, "it is not valid UTF-8")
	case strings.ContainsRune(s, 0):
		return invalid(what, "it must not contain a zero byte")
	}
	return nil
}

// Get returns what the store knows of a task; [ErrNotFound] if that is nothing.
func (q *Queue) Get(ctx context.Context, id string) (Info, error) {
	return q.store.Get(ctx, q.name, id)
}

// List returns tasks in a state.
func (q *Queue) List(ctx context.Context, r ListRequest) (Page, error) {
	return q.store.List(ctx, q.name, r)
}

// Stats returns the figures of the queue.
func (q *Queue) Stats(ctx context.Context) (Stats, error) { return q.store.Stats(ctx, q.name) }

// Cancel ends a task that waits. Of one that runs the context is cancelled with
// [ErrCancelled]; it ends as cancelled unless its handler returns nil. It reports
// false if the task has ended, and does not wait for one that runs; see [Queue.Wait].
func (q *Queue) Cancel(ctx context.Context, id string) (bool, error) {
	return q.store.Act(ctx, q.name, id, ActCancel)
}

// Promote makes a task due that waits for its time.
func (q *Queue) Promote(ctx context.Context, id string) (bool, error) {
	return q.store.Act(ctx, q.name, id, ActPromote)
}

// Retry makes a dead or cancelled task due, with its counts at 0. It reports false
// if the task is neither, or if another task has its unique key by now.
func (q *Queue) Retry(ctx context.Context, id string) (bool, error) {
	return q.store.Act(ctx, q.name, id, ActRetry)
}

// Delete forgets a task. It reports false if the task runs: cancel it first.
func (q *Queue) Delete(ctx context.Context, id string) (bool, error) {
	return q.store.Act(ctx, q.name, id, ActDelete)
}

// Pause stops workers from claiming tasks of the queue; what runs goes on.
func (q *Queue) Pause(ctx context.Context) error {
	return q.store.Configure(ctx, q.name, func(s *Settings) { s.Paused = true })
}

// Resume is the inverse of Pause.
func (q *Queue) Resume(ctx context.Context) error {
	return q.store.Configure(ctx, q.name, func(s *Settings) { s.Paused = false })
}

// Configure changes the settings of the queue by what f makes of them. f may be
// called more than once.
func (q *Queue) Configure(ctx context.Context, f func(*Settings)) error {
	return q.store.Configure(ctx, q.name, f)
}

// Purge deletes all tasks in a state and returns how many there were.
func (q *Queue) Purge(ctx context.Context, s State) (n int, err error) {
	for {
		some, err := q.store.Purge(ctx, q.name, s)
		n += some
		if err != nil || some == 0 {
			return n, err
		}
	}
}

// Wait returns what is known of a task when it has ended: its state says how, and
// Result is what its handler has left. It looks again and again, at growing
// intervals of at most a second.
func (q *Queue) Wait(ctx context.Context, id string) (Info, error) {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		i, err := q.Get(ctx, id)
		if err != nil || i.State.Ended() {
			return i, err
		}
		if err := sleep(ctx, wait); err != nil {
			return i, err
		}
	}
}
