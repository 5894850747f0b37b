package redisstore

import (
	"strconv"
	"time"

	"github.com/ambit-go/ambit/locks"
)

// An answer is what a script has returned, or a part of it: a string, a number, a list.
type answer struct{ v any }

// at returns a part of a list, nothing if there is none.
func (a answer) at(i int) answer {
	if list, ok := a.v.([]any); ok && i < len(list) {
		return answer{list[i]}
	}
	return answer{}
}

func (a answer) len() int {
	list, _ := a.v.([]any)
	return len(list)
}

func (a answer) text() string {
	s, _ := a.v.(string)
	return s
}

func (a answer) number() int64 {
	if n, ok := a.v.(int64); ok {
		return n
	}
	n, _ := strconv.ParseInt(a.text(), 10, 64)
	return n
}

func (a answer) time() time.Time {
	if us := a.number(); us != 0 {
		return time.UnixMicro(us)
	}
	return time.Time{}
}

func (a answer) duration() time.Duration { return time.Duration(a.number()) * time.Microsecond }

// grant reads a lease.
func (a answer) grant() locks.Grant {
	return locks.Grant{
		ID: a.at(0).text(), Version: a.at(1).text(), Owner: a.at(2).text(), Fence: a.at(3).number(), Slot: int(a.at(4).number()),
		Permits: int(a.at(5).number()), Shared: a.at(6).text() == "1", Revoked: a.at(7).text() == "1",
		Lease: a.at(8).duration(), Acquired: a.at(9).time(), Expires: a.at(10).time(),
	}
}

// answer reads what became of a request.
func (a answer) answer(q *locks.Request) locks.Answer {
	switch a.at(0).text() {
	case "granted":
		return locks.Answer{Granted: true, Grant: a.at(1).grant()}
	case "waits":
		return locks.Answer{Place: int(a.at(1).number()), Holder: a.at(2).text()}
	}
	kind, size := locks.Kind(a.at(2).number()), a.at(3).number()
	var err error
	switch a.at(1).text() {
	case "none":
		err = locks.ErrNotFound
	case "kind":
		err = locks.Conflict("it is a %s, not a %s", kind, q.Kind)
	case "size":
		err = locks.Conflict("it has size %d, not %d: say Resize to change it", size, q.Size)
	default:
		err = locks.Conflict("%d permits are asked for, and it has %d in all", max(q.Permits, 1), size)
	}
	return locks.Answer{Err: err}
}

// renewed reads what became of a renewal.
func (a answer) renewed() locks.RenewResult {
	switch a.at(0).text() {
	case "extended":
		return locks.RenewResult{Verdict: locks.Extended, Grant: a.at(1).grant()}
	case "revoked":
		return locks.RenewResult{Verdict: locks.Revoked}
	}
	return locks.RenewResult{Verdict: locks.NotYours}
}

// record reads what read.lua returns.
func (a answer) record(name locks.Name) locks.Record {
	f := a.at(5)
	r := locks.Record{
		Name: name, Kind: locks.Kind(a.at(0).number()), Size: int(a.at(1).number()), Fence: a.at(2).number(), Busy: int(a.at(3).number()),
		Waiters: int(a.at(4).number()), Lease: f.at(0).duration(), Fair: f.at(1).text() == "1", DeleteOnRelease: f.at(2).text() == "1",
		LockDelay: f.at(3).duration(), Version: f.at(4).text(), CreatedBy: f.at(5).text(), CreatedAt: f.at(6).time(),
		UpdatedBy: f.at(7).text(), UpdatedAt: f.at(8).time(),
	}
	if data, ok := f.at(9).v.(string); ok {
		r.Data = &data
	}
	for i := range a.at(6).len() {
		r.Holders = append(r.Holders, a.at(6).at(i).grant())
	}
	return r
}
