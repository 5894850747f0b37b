package taskqueue

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ambit-go/ambit/taskqueue/internal/clock"
)

// Enqueue adds one task and returns its id. If a task of that ID is known already
// nothing is changed, and the id is returned: so an Enqueue whose answer was lost
// can be repeated. If another task holds the UniqueKey the error is a
// [*DuplicateError].
//
// With a [Store] that could not be reached the error is that of the store, and the
// task was added or not. The id is returned all the same: repeat the call with it as
// the ID to know. A task that is not valid is an [*InvalidError].
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

// EnqueueAll adds tasks and says what became of each, in the order of tasks. Those of
// one queue are added in one step, all or none; queue after queue, in the order in
// which they are named first. A task may be a duplicate of one before it.
//
// Nothing is added if one of the tasks is not valid, or if there are more than
// [MaxBatch] of a queue or [MaxBatchBytes] of their payloads and headers: the error is
// an [*InvalidError]. If a queue fails the error says so, and the results of its
// tasks, and of those behind it, have an ID and no Verdict.
//
// A task may be in After of one behind it: give it an ID. If one that is to be waited for is not
// known, nothing is added to the queue, and the error is an [*InvalidError]; it matches a
// [*DuplicateError] if that one is in the same call and is a duplicate.
func (q *Queue) EnqueueAll(ctx context.Context, tasks []Task) ([]Result, error) {
	return q.enqueue(ctx, tasks, func(name string, batch []Task) ([]Result, error) { return q.store.Enqueue(ctx, name, batch) })
}

// EnqueueTx adds tasks in a transaction of the caller's own: they exist if and only if that is
// committed, with all else that was written in it. tx is a *sql.Tx or a pgx.Tx of the database
// that the store is in; see package sqlstore. EnqueueTx does not end it. Workers hear of the
// tasks when it is committed.
//
// The results are as of EnqueueAll. After an error roll tx back: tasks of another queue may be in it.
// One of another database is refused with [ErrOtherDatabase]. A store that is in no such
// database is an [*InvalidError]. On SQLite tx keeps all others from writing: keep it short.
func (q *Queue) EnqueueTx(ctx context.Context, tx any, tasks ...Task) ([]Result, error) {
	store, ok := q.store.(TxStore)
	if !ok {
		return nil, invalid("store", "it has no transactions that tasks can be added in: use package sqlstore")
	}
	return q.enqueue(ctx, tasks, func(name string, batch []Task) ([]Result, error) { return store.EnqueueTx(ctx, tx, name, batch) })
}

// enqueue adds tasks, queue after queue.
func (q *Queue) enqueue(
	ctx context.Context, tasks []Task, add func(queue string, batch []Task) ([]Result, error),
) ([]Result, error) {
	batches, places := map[string][]Task{}, map[string][]int{}
	var names []string
	results := make([]Result, len(tasks))
	for i, t := range tasks {
		t.Headers = q.headers(ctx, t.Headers)
		if err := q.complete(&t); err != nil {
			return nil, err
		}
		if batches[t.Queue] == nil {
			names = append(names, t.Queue)
		}
		batches[t.Queue], places[t.Queue] = append(batches[t.Queue], t), append(places[t.Queue], i)
		results[i].ID = t.ID
	}
	for _, name := range names {
		if err := CheckTasks(batches[name]); err != nil {
			return nil, about(err, "queue", name)
		}
	}
	for _, name := range names {
		added, err := add(name, batches[name])
		if err != nil {
			return results, about(err, "queue", name)
		}
		for i, at := range places[name] {
			results[at] = added[i]
		}
	}
	return results, nil
}

func headersSize(headers map[string]string) (n int) {
	for k, v := range headers {
		n += len(k) + len(v)
	}
	return n
}

// complete sets what t leaves open, and says what is wrong with that.
func (q *Queue) complete(t *Task) error {
	if t.Queue == "" {
		t.Queue = q.name
	}
	if t.ID == "" {
		t.ID = newID()
	}
	if len(t.After) > 0 && t.OnFailed == "" {
		t.OnFailed = OnFailedSkip
	}
	if t.MaxFailures == 0 {
		t.MaxFailures = DefaultMaxFailures
	}
	if t.MaxCrashes == 0 {
		t.MaxCrashes = DefaultMaxCrashes
	}
	if err := errors.Join(CheckName("Queue", t.Queue), checkSizes(t, q.opts.maxPayload)); err != nil {
		return err
	}
	t.Delay = max(t.Delay, 0)
	t.Payload, t.Headers, t.After = slices.Clone(t.Payload), maps.Clone(t.Headers), slices.Clone(t.After)
	return nil
}

func checkSizes(t *Task, maxPayload int) error {
	if n := len(t.Payload); n > maxPayload {
		return invalid("Payload", "it has %d bytes, at most %d are allowed: store it elsewhere and enqueue where it is, or raise PayloadLimit", n, maxPayload)
	}
	if n := headersSize(t.Headers); n > MaxHeaders {
		return invalid("Headers", "they have %d bytes, at most %d are allowed: put it in the Payload", n, MaxHeaders)
	}
	for k, v := range t.Headers {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return invalid("Headers", "%q is not valid UTF-8: put it in the Payload", k)
		}
	}
	return nil
}

// latestTime is the latest time that every store tells from those next to it.
var latestTime = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

func checkTimes(t *Task) error {
	if t.Delay != 0 && !t.RunAt.IsZero() {
		return invalid("Delay", "it is set and RunAt, too: set one of them")
	}
	for name, at := range map[string]time.Time{"RunAt": t.RunAt, "ExpiresAt": t.ExpiresAt} {
		if !at.IsZero() && (at.After(latestTime) || at.Unix() < 0) {
			return invalid(name, "it is in the year %d: it must be from 1970 to 2199", at.Year())
		}
	}
	switch {
	case t.Delay > MaxDelay:
		return invalid("Delay", "it is %v, at most %v are allowed", t.Delay, MaxDelay)
	case t.Timeout < 0:
		return invalid("Timeout", "it is negative: leave it 0 for no bound")
	case t.Retention < 0:
		return invalid("Retention", "it is negative: leave it 0 for the shortest, %v", MinRetention)
	case t.Retention > MaxRetention:
		return invalid("Retention", "it is %v, at most %v are allowed", t.Retention, MaxRetention)
	}
	return nil
}

// Limits of counts: redisstore keeps them in two bytes and in one.
const (
	mostFailures = 1<<16 - 1
	mostCrashes  = 1<<8 - 1
)

func checkCounts(t *Task) error {
	switch {
	case t.Priority >= Priorities:
		return invalid("Priority", "it is %d, the most urgent is %d", t.Priority, Priorities-1)
	case t.MaxFailures < 0 || t.MaxFailures > mostFailures:
		return invalid("MaxFailures", "it is %d: it must be from 1 to %d, or 0 for %d", t.MaxFailures, mostFailures, DefaultMaxFailures)
	case t.MaxCrashes < 0 || t.MaxCrashes > mostCrashes:
		return invalid("MaxCrashes", "it is %d: it must be from 1 to %d, or 0 for %d", t.MaxCrashes, mostCrashes, DefaultMaxCrashes)
	case t.Until > Start:
		return invalid("Until", "it is %d: it must be End or Start", t.Until)
	}
	return nil
}

// CheckName says what is wrong with a name, for stores: it must be UTF-8 without a
// zero byte, not empty, and at most MaxName bytes long.
func CheckName(what, s string) error {
	switch {
	case s == "":
		return invalid(what, "it must not be empty: give it a name")
	case len(s) > MaxName:
		return invalid(what, "it has %d bytes, at most %d are allowed: shorten it, or use a hash of it", len(s), MaxName)
	case !utf8.ValidString(s):
		return invalid(what, "%q is not valid UTF-8: encode it, as in hexadecimal", s)
	case strings.ContainsRune(s, 0):
		return invalid(what, "%q must not contain a zero byte: leave it out", s)
	}
	return nil
}

// ids are 16 bytes in the order in which they were made: 48 bits of milliseconds,
// then 80 bits that are drawn, or one more than those of the id before if that is of
// the same millisecond. They are written in an alphabet that sorts as the bytes do.
var idText = base32.HexEncoding.WithPadding(base32.NoPadding)

var lastID struct {
	sync.Mutex
	ms   int64
	high uint16
	low  uint64
}

// newID returns an id that sorts behind all that this process has made.
func newID() string {
	lastID.Lock()
	defer lastID.Unlock()
	ms := clock.Now().UnixMilli()
	if ms > lastID.ms {
		var b [10]byte
		_, _ = rand.Read(b[:]) // never fails
		lastID.ms = ms
		lastID.high, lastID.low = binary.BigEndian.Uint16(b[:])>>1, binary.BigEndian.Uint64(b[2:])
	} else if lastID.low++; lastID.low == 0 {
		lastID.high++
	}
	b := make([]byte, 0, 16)
	b = binary.BigEndian.AppendUint16(b, uint16(lastID.ms>>32))
	b = binary.BigEndian.AppendUint32(b, uint32(lastID.ms))
	b = binary.BigEndian.AppendUint16(b, lastID.high)
	b = binary.BigEndian.AppendUint64(b, lastID.low)
	return idText.EncodeToString(b)
}
