package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// The answers of the scripts are lists, numbers and texts.

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func integer(v any) int64 {
	n, _ := v.(int64)
	return n
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func infos(queue string, v any, now time.Time) (all []taskqueue.Info, err error) {
	all = make([]taskqueue.Info, 0, len(list(v)))
	for _, one := range list(v) {
		i, err := readInfo(queue, one, now)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

// flagCancel is the flag of a task that is asked to stop, flagParked of one that a limit keeps; see tasks.lua.
const flagCancel, flagParked = 4, 32

// taskFields is how many fields of a task a script answers with. The last is the group of its limit.
const taskFields = 18

// readInfo reads a task as common.lua writes it. now tells whether one that waits is due.
func readInfo(queue string, v any, now time.Time) (i taskqueue.Info, err error) {
	f := list(v)
	if len(f) != taskFields {
		return i, fmt.Errorf("taskqueue: redis: an answer has %d fields of a task, not %d", len(f), taskFields)
	}
	if err := unpack(text(f[1]), &i); err != nil {
		return i, fmt.Errorf("task %s in queue %s: %w", text(f[0]), queue, err)
	}
	i.ID, i.Queue = text(f[0]), queue
	i.State, i.Token = taskqueue.State(integer(f[2])), integer(f[3])
	i.Attempt, i.Failures, i.Crashes, i.Releases = int(integer(f[4])), int(integer(f[5])), int(integer(f[6])), int(integer(f[7]))
	i.CancelRequested = integer(f[8])&flagCancel != 0
	i.StartedAt, i.EndedAt, i.DueAt, i.LeaseEnd = fromMicros(integer(f[9])), fromMicros(integer(f[10])), fromMicros(integer(f[11])), fromMicros(integer(f[12]))
	i.Worker, i.LastError = text(f[13]), text(f[14])
	i.Result, i.Progress = bytes(f[15]), bytes(f[16])
	waits := i.State == taskqueue.StateScheduled || i.State == taskqueue.StateRetrying
	i.Limited = integer(f[8])&flagParked != 0
	if i.Limited || waits && !now.IsZero() && !i.DueAt.After(now) {
		i.State = taskqueue.StateReady
	}
	return i, nil
}

func bytes(v any) []byte {
	if s := text(v); s != "" {
		return []byte(s)
	}
	return nil
}

// An envelope is what does not change of a task: a header that the scripts read
// (see tasks.lua), then what only Go reads. It is kept small, since a million
// delayed tasks are little else.

// The flags of a header. Those that begin with has are of optional fields that follow it; untilStart: the unique key is
// held until the start only; timed: the task is for a time that somebody has said.
const (
	hasKey = 1 << iota
	hasRetention
	hasExpiry
	untilStart
	timed
	hasLimitKey
	hasAfter
)

// pack returns the envelope of t, but for the time at which it is enqueued, which the
// script puts before it.
func pack(t *taskqueue.Task) []byte {
	b := make([]byte, 0, 64+len(t.UniqueKey)+len(t.Type)+len(t.Payload))
	what := flag(hasKey, t.UniqueKey != "") | flag(hasRetention, t.Retention > 0) |
		flag(hasExpiry, !t.ExpiresAt.IsZero()) | flag(untilStart, t.Until == taskqueue.Start) | flag(timed, !t.RunAt.IsZero()) |
		flag(hasLimitKey, t.LimitKey != "") | flag(hasAfter, len(t.After) > 0)
	b = append(b, what, t.Priority)
	b = binary.BigEndian.AppendUint16(b, uint16(min(t.MaxFailures, 0xffff)))
	b = append(b, byte(min(t.MaxCrashes, 0xff)))
	if what&hasRetention != 0 {
		b = appendInt(b, 6, uint64(t.Retention.Microseconds()))
	}
	if what&hasExpiry != 0 {
		b = appendInt(b, 7, uint64(micros(t.ExpiresAt)))
	}
	if what&hasKey != 0 {
		b = binary.BigEndian.AppendUint16(b, uint16(len(t.UniqueKey)))
		b = append(b, t.UniqueKey...)
	}
	if what&hasLimitKey != 0 {
		b = binary.BigEndian.AppendUint16(b, uint16(len(t.LimitKey)))
		b = append(b, t.LimitKey...)
	}
	if what&hasAfter != 0 {
		b = packAfter(b, t)
	}

	b = appendText(b, t.Type)
	b = binary.AppendUvarint(b, uint64(t.Timeout))
	b = binary.AppendUvarint(b, uint64(micros(t.RunAt)))
	b = binary.AppendUvarint(b, uint64(len(t.Headers)))
	for k, v := range t.Headers {
		b = appendText(appendText(b, k), v)
	}
	return append(b, t.Payload...)
}

func flag(bit byte, is bool) byte {
	if is {
		return bit
	}
	return 0
}

// appendInt appends the last n bytes of v, big-endian. A v that needs more is the
// largest that fits.
func appendInt(b []byte, n int, v uint64) []byte {
	v = min(v, 1<<(8*n)-1)
	for i := n - 1; i >= 0; i-- {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// micros is t in the precision that is stored; 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMicro(), 1)
}

func fromMicros(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// reader takes an envelope apart. Once it has run out all it returns is empty.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.short, r.b = true, nil
		return nil
	}
	got := r.b[:n]
	r.b = r.b[n:]
	return got
}

func (r *reader) fixed(n int) (v uint64) {
	for _, c := range r.bytes(uint64(n)) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.short, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) text() string { return string(r.bytes(r.number())) }

var errShort = errors.New("taskqueue: the envelope of a task is cut short: the store is damaged, or a newer version wrote it")

// unpack reads what pack has written, behind the time at which it was enqueued.
func unpack(p string, i *taskqueue.Info) error {
	r := &reader{b: []byte(p)}
	i.EnqueuedAt = fromMicros(int64(r.fixed(7)))
	what := r.fixed(1)
	i.Priority, i.MaxFailures, i.MaxCrashes = uint8(r.fixed(1)), int(r.fixed(2)), int(r.fixed(1))
	if what&untilStart != 0 {
		i.Until = taskqueue.Start
	}
	if what&hasRetention != 0 {
		i.Retention = time.Duration(r.fixed(6)) * time.Microsecond
	}
	if what&hasExpiry != 0 {
		i.ExpiresAt = fromMicros(int64(r.fixed(7)))
	}
	if what&hasKey != 0 {
		i.UniqueKey = string(r.bytes(r.fixed(2)))
	}
	if what&hasLimitKey != 0 {
		i.LimitKey = string(r.bytes(r.fixed(2)))
	}
	if what&hasAfter != 0 {
		r.after(&i.Task)
	}
	if len(r.b) == 0 && !r.short {
		return nil // of a task whose envelope the store had lost: the script has made one
	}
	i.Type = r.text()
	i.Timeout = time.Duration(r.number())
	i.RunAt = fromMicros(int64(r.number()))
	if n := r.number(); n > 0 && !r.short {
		i.Headers = map[string]string{}
		for range min(n, uint64(len(r.b))) {
			k := r.text()
			i.Headers[k] = r.text()
		}
	}
	if r.short {
		return errShort
	}
	if len(r.b) > 0 {
		i.Payload = append([]byte(nil), r.b...)
	}
	return nil
}
