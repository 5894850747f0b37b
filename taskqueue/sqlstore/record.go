package sqlstore

import (
	"encoding/json"
	"math"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// A record is a task as it is stored. While it waits, State is StateScheduled, or
// StateRetrying after a failure; whether its time has come is decided by looking.
type record struct {
	taskqueue.Info
	flags    flags
	due      int64
	settled  int64 // the token whose outcome was taken over last
	leaseEnd int64 // by the steady clock
	lease    int64 // its length in µs
	spareEnd int64 // when the lease ends if it is given its length once more; see spare
	ended    int64
	forget   int64 // when it is forgotten, by the steady clock; 0: by nothing but an act
	size     int64 // bytes of the payload and the headers
	extra    int64 // bytes of the result and of the progress

	parked  bool   // a limit of its LimitKey or type keeps it; see keylimits.go
	limited string // the limit that it is under while it runs or is parked

	held  bool  // it has held its unique key when it was read
	texts texts // which of them have changed

	waited bool // it was in StateWaiting when it was read
	begun  bool // it was begun since it was read; see beginTasks
}

// texts are what of a record may be long, and is written only if it has changed.
type texts uint8

const (
	errorText texts = 1 << iota
	resultText
	progressText
)

type flags int64

const (
	holds  flags = 1 << iota // it is the holder of its unique key
	reaped                   // its lease has run out, and it was not claimed since
	asked                    // somebody has asked for it to be cancelled
	spared                   // its lease has run out, and got its length once more because of a gap
	lasts                    // it does not expire any more: a handler has begun it, or it is to run again
	starts                   // it holds its unique key until it starts, not until it ends
	atOnce                   // it was ready when it was written: a clock that is put back does not have it wait
)

func (r *record) has(f flags) bool { return r.flags&f != 0 }

func (r *record) set(f flags, on bool) {
	if r.flags &^= f; on {
		r.flags |= f
	}
}

func (r *record) waits() bool {
	return r.State == taskqueue.StateScheduled || r.State == taskqueue.StateRetrying
}

// The stored states: those below running wait, those above 4 have ended. Partial indexes
// tell them apart by that. StateWaiting is among those that have ended, so that their index has it.
const (
	scheduled = 1
	retrying  = 2
	running   = 3
	parked    = 4 // of those that wait
)

func storedState(r *record) int64 {
	switch {
	case r.parked:
		return parked
	case r.State == taskqueue.StateRetrying:
		return retrying
	}
	return int64(r.State)
}

func readState(n int64) taskqueue.State {
	if n == retrying {
		return taskqueue.StateRetrying
	}
	return taskqueue.State(n)
}

// These columns change with what happens to a task, after its key.
var changing = []column{
	{"queue", "text"}, {"id", "text"}, {"state", "bigint"}, {"flags", "bigint"}, {"due", "bigint"}, {"token", "bigint"}, {"settled", "bigint"},
	{"lease_end", "bigint"}, {"lease", "bigint"}, {"spare_end", "bigint"}, {"worker", "text"}, {"attempt", "bigint"}, {"failures", "bigint"},
	{"crashes", "bigint"}, {"releases", "bigint"}, {"started", "bigint"}, {"ended", "bigint"}, {"forget", "bigint"}, {"extra", "bigint"},
	{"limited", "text"},
}

// These never change.
var lasting = []column{
	{"kind", "text"}, {"class", "bigint"}, {"enqueued", "bigint"}, {"unique_key", "text"}, {"expires", "bigint"}, {"retention", "bigint"},
	{"max_failures", "bigint"}, {"max_crashes", "bigint"}, {"size", "bigint"}, {"limit_key", "text"},
}

var (
	payloadColumns = []column{{"payload", "bytea"}, {"rest", "bytea"}, {"error", "bytea"}, {"result", "bytea"}, {"progress", "bytea"}}
	recordColumns  = append(append([]column{}, changing...), lasting...)
	recordNames    = names(recordColumns)
)

// changingRow is r for changing.
func (r *record) changingRow() []any {
	return []any{
		r.Queue, r.ID, storedState(r), int64(r.flags), r.due, r.Token, r.settled, r.leaseEnd, r.lease, r.spareEnd, r.Worker,
		int64(r.Attempt), int64(r.Failures), int64(r.Crashes), int64(r.Releases), micros(r.StartedAt), r.ended, r.forget, r.extra, r.limited,
	}
}

// lastingRow is r for lasting.
func (r *record) lastingRow() []any {
	return []any{
		r.Type, int64(classOf(r.Priority)), micros(r.EnqueuedAt), r.UniqueKey, micros(r.ExpiresAt), int64(r.Retention),
		int64(r.MaxFailures), int64(r.MaxCrashes), r.size, r.LimitKey,
	}
}

// payloadRow is r for payloadColumns.
func (r *record) payloadRow() []any {
	return []any{bytes(r.Payload), r.rest(), []byte(r.LastError), bytes(r.Result), bytes(r.Progress)}
}

// bytes is b, not nil: no column is null.
func bytes(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// rest is what is stored of a task that few tasks have.
type rest struct {
	Headers map[string]string `json:"headers,omitempty"`
	Delay   time.Duration     `json:"delay,omitempty"`
	RunAt   time.Time         `json:"run_at,omitzero"`
	Timeout time.Duration     `json:"timeout,omitempty"`

	After    []string           `json:"after,omitempty"`
	OnFailed taskqueue.OnFailed `json:"on_failed,omitempty"`
}

func (r *record) rest() []byte {
	if len(r.Headers) == 0 && r.Delay == 0 && r.RunAt.IsZero() && r.Timeout == 0 && len(r.After) == 0 {
		return []byte{}
	}
	b, err := json.Marshal(rest{r.Headers, r.Delay, r.RunAt.UTC(), r.Timeout, r.After, r.OnFailed})
	if err != nil {
		panic(err) // it has no field that cannot be written
	}
	return b
}

// classOf returns where tasks of a priority stand in the order: the most urgent at 0.
func classOf(priority uint8) int { return taskqueue.Priorities - 1 - int(priority) }

// scanRecord reads a row of recordColumns.
func scanRecord(scan scanner) (*record, error) {
	r := new(record)
	var state, started, class, enqueued, expires int64
	err := scan(&r.Queue, &r.ID, &state, (*int64)(&r.flags), &r.due, &r.Token, &r.settled, &r.leaseEnd, &r.lease, &r.spareEnd, &r.Worker,
		&r.Attempt, &r.Failures, &r.Crashes, &r.Releases, &started, &r.ended, &r.forget, &r.extra, &r.limited,
		&r.Type, &class, &enqueued, &r.UniqueKey, &expires, (*int64)(&r.Retention), &r.MaxFailures, &r.MaxCrashes, &r.size, &r.LimitKey)
	if err != nil {
		return nil, err
	}
	r.State, r.Priority, r.parked = readState(state), uint8(taskqueue.Priorities-1-class), state == parked
	if r.parked && r.Failures+r.Crashes == 0 {
		r.State = taskqueue.StateScheduled
	}
	r.StartedAt, r.EnqueuedAt, r.ExpiresAt = timeOf(started), timeOf(enqueued), timeOf(expires)
	if r.has(starts) {
		r.Until = taskqueue.Start
	}
	r.held, r.waited = r.has(holds), r.State == taskqueue.StateWaiting
	return r, nil
}

// eachRecord calls f with each row of recordColumns.
func eachRecord(f func(r *record)) func(scanner) error {
	return func(scan scanner) error {
		r, err := scanRecord(scan)
		if err == nil {
			f(r)
		}
		return err
	}
}

// records adds each row of recordColumns to all.
func records(all *[]*record) func(scanner) error {
	return eachRecord(func(r *record) { *all = append(*all, r) })
}

// scanPayload reads a row of payloadColumns.
func (r *record) scanPayload(payload, more, failure, result, progress []byte) error {
	r.Payload, r.LastError, r.Result, r.Progress = orNil(payload), string(failure), orNil(result), orNil(progress)
	if len(more) == 0 {
		return nil
	}
	var of rest
	err := json.Unmarshal(more, &of)
	r.Headers, r.Delay, r.RunAt, r.Timeout = of.Headers, of.Delay, of.RunAt, of.Timeout
	r.After, r.OnFailed = of.After, of.OnFailed
	return err
}

func orNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// info returns r as others see it.
func (r *record) info(now moment) taskqueue.Info {
	i := r.Info
	i.DueAt, i.EndedAt, i.CancelRequested = time.UnixMicro(r.due).UTC(), timeOf(r.ended), r.has(asked)
	switch {
	case r.parked:
		i.State, i.Limited = taskqueue.StateReady, true
	case r.waits() && r.due <= now.wall:
		i.State = taskqueue.StateReady
	case r.State == taskqueue.StateRunning:
		i.LeaseEnd = time.UnixMicro(r.leaseEnd - now.steady + now.wall).UTC()
	}
	return i
}

// weight is what r counts for MaxBatchBytes.
func (r *record) weight() int { return int(r.size + r.extra) }

// micros is t as it is stored: 0 for no time. Times before 1970 count as 1970.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMicro(), 0)
}

func timeOf(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// dueIn is d after now, rounded up, so that nothing is early.
func dueIn(now int64, d time.Duration) int64 {
	if d <= 0 {
		return now
	}
	us := int64((d-1)/time.Microsecond) + 1
	return now + min(us, math.MaxInt64-now)
}
